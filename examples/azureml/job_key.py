"""Prints the job's key, the secret launchd-key of the Key Vault at $KEY_VAULT.

Make it once, and let the compute cluster's managed identity read it (Key Vault Secrets User):

    az keyvault secret set --vault-name my-vault --name launchd-key --value "$(openssl rand -base64 32)"
"""
import os

from azure.identity import DefaultAzureCredential
from azure.keyvault.secrets import SecretClient

credential = DefaultAzureCredential(
    managed_identity_client_id=os.environ.get("DEFAULT_IDENTITY_CLIENT_ID"))
print(SecretClient(os.environ["KEY_VAULT"], credential).get_secret("launchd-key").value)
