/* test_master.c - where worker 0 listens: the whole order of places. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/vec.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"

#define CLI(id, text) \
	{ \
		SET_##id, text, LEVEL_COMMAND_LINE \
	}
#define ADDR_OF_US "10.0.0.7"

static const struct master_row {
	const char *says;
	unsigned nnodes;
	const char *launcher;
	struct setting_given put[4]; /* ends with text NULL */
	const char *env[6];
	const char *addr;
	unsigned port;
	const char *addr_from, *port_from; /* "given": a setting; NULL: not looked at */
	const char *note;                  /* part of a note; NULL: no warning */
} found[] = {
	{ "one node: itself, and a free port", 1, NULL, { { 0 } }, { NULL }, "127.0.0.1", 0,
		"one node", "one node: a free port", NULL },
	{ "a given address", 2, NULL, { CLI(MASTER_ADDR, "h") }, { NULL }, "h", 29500, "given",
		"default", NULL },
	{ "a given address and port", 2, NULL, { CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "1234") },
		{ NULL }, "h", 1234, "given", "given", NULL },
	{ "a given port on one node", 1, NULL, { CLI(MASTER_PORT, "1234") }, { NULL }, "127.0.0.1",
		1234, "one node", "given", NULL },
	{ "a given address on one node leaves the port free", 1, NULL, { CLI(MASTER_ADDR, "h") },
		{ NULL }, "h", 0, "given", "one node: a free port", NULL },
	{ "port 0 on one node is a free one", 1, NULL, { CLI(MASTER_PORT, "0") }, { NULL },
		"127.0.0.1", 0, "one node", "given", NULL },

	{ "an endpoint with a port", 2, NULL, { CLI(RDZV_ENDPOINT, "h:1234") }, { NULL }, "h", 1234,
		"given", "given", NULL },
	{ "an endpoint without a port", 2, NULL, { CLI(RDZV_ENDPOINT, "h") }, { NULL }, "h", 29500,
		"given", "default", NULL },
	{ "an endpoint without a port, with one of its own", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "h"), CLI(MASTER_PORT, "1234") }, { NULL }, "h", 1234, "given",
		"given", NULL },
	{ "c10d has a port of its own", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "h"), CLI(RDZV_BACKEND, "c10d") }, { NULL }, "h", 29400,
		"given", "given", NULL },
	{ "an IPv6 endpoint", 2, NULL, { CLI(RDZV_ENDPOINT, "[fe80::1]:1234") }, { NULL },
		"fe80::1", 1234, "given", "given", NULL },
	{ "an IPv6 endpoint without a port", 2, NULL, { CLI(RDZV_ENDPOINT, "[fe80::1]") }, { NULL },
		"fe80::1", 29500, NULL, NULL, NULL },
	{ "a bare IPv6 address has no port", 2, NULL, { CLI(RDZV_ENDPOINT, "fe80::1") }, { NULL },
		"fe80::1", 29500, "given", "default", NULL },
	{ "an empty endpoint is none", 1, NULL, { CLI(RDZV_ENDPOINT, "") }, { NULL }, "127.0.0.1",
		0, "one node", NULL, NULL },
	{ "endpoint and address of one opinion", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "h:1"), CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "1") },
		{ NULL }, "h", 1, NULL, NULL, NULL },
	{ "the higher level of the two spellings counts: the address", 2, NULL,
		{ { SET_RDZV_ENDPOINT, "e:1", LEVEL_PET }, CLI(MASTER_ADDR, "h") }, { NULL }, "h",
		29500, "given", "default", NULL },
	{ "the higher level of the two spellings counts: the endpoint", 2, NULL,
		{ { SET_MASTER_ADDR, "h", LEVEL_PET }, { SET_MASTER_PORT, "9", LEVEL_PET },
			CLI(RDZV_ENDPOINT, "e:1") },
		{ NULL }, "e", 1, NULL, NULL, "given=h is overridden" },
	{ "an endpoint goes above another address beside it, which is said", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "a:1"), CLI(MASTER_ADDR, "b") }, { NULL }, "a", 1, NULL, NULL,
		"given=b is overridden" },
	{ "an endpoint goes above another port beside it, which is said", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "a:1"), CLI(MASTER_PORT, "2") }, { NULL }, "a", 1, "given",
		"given", "given=2 is overridden" },
	{ "brackets are for endpoints, but harmless", 2, NULL, { CLI(MASTER_ADDR, "[fe80::1]") },
		{ NULL }, "fe80::1", 29500, "given", "default", NULL },
	{ "an IPv6 address and a port that is too long for a part of it", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "::1:29400") }, { NULL }, "::1", 29400, "given", "given",
		"given: \"::1:29400\" is read as port 29400 of ::1; write [::1]:29400" },
	{ "an IPv6 address of a zone", 2, NULL, { CLI(MASTER_ADDR, "fe80::1%eth0") }, { NULL },
		"fe80::1%eth0", 29500, NULL, NULL, NULL },
	{ "a bad address that one node ignores", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=10.1.1.1:29500" }, "127.0.0.1", 0, "one node", NULL,
		"MASTER_ADDR=10.1.1.1:29500 is not this host" },
	{ "inside a worker the environment is that worker's", 1, NULL, { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=0", "MASTER_ADDR=node7", "MASTER_PORT=1" },
		"127.0.0.1", 0, "one node", NULL, NULL },
	{ "a port of a higher level than the endpoint's", 2, NULL,
		{ { SET_RDZV_ENDPOINT, "e:1", LEVEL_PET }, CLI(MASTER_PORT, "9") }, { NULL }, "e",
		9, NULL, NULL, NULL },

	{ "on one node its own address", 1, NULL, { CLI(LOCAL_ADDR, "10.9.9.9") }, { NULL },
		"10.9.9.9", 0, "given", NULL, NULL },
	{ "a master address is above it", 1, NULL,
		{ CLI(LOCAL_ADDR, "10.9.9.9"), CLI(MASTER_ADDR, "h") }, { NULL }, "h", 0, "given",
		NULL, NULL },
	{ "on several nodes it is not the master's", 2, NULL,
		{ CLI(LOCAL_ADDR, "10.9.9.9"), CLI(MASTER_ADDR, "h") }, { NULL }, "h", 29500, NULL,
		NULL, NULL },

	{ "Azure, several nodes", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4:6000" },
		"10.0.0.4", 6105, "AZ_BATCH_MASTER_NODE", "Azure ML's rule", NULL },
	{ "Azure, several nodes, the port is kept", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4:6000",
			"MASTER_PORT=1234" },
		"10.0.0.4", 1234, NULL, "MASTER_PORT", NULL },
	{ "Azure, several nodes, a host without a port", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4" }, "10.0.0.4",
		6105, NULL, NULL, NULL },
	{ "Azure, no word of the local size", 2, "mpirun", { { 0 } },
		{ "AZ_BATCH_MASTER_NODE=10.0.0.4:6000" }, "10.0.0.4", 6105, NULL, NULL, NULL },
	{ "Azure is above MASTER_ADDR", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4:6000",
			"MASTER_ADDR=h" },
		"10.0.0.4", 6105, NULL, NULL, NULL },
	{ "Azure is below a given address", 2, "mpirun", { CLI(MASTER_ADDR, "h") },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4:6000" }, "h",
		29500, "given", "default", NULL },
	{ "Azure is below a given port", 2, "mpirun", { CLI(MASTER_PORT, "77") },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_MASTER_NODE=10.0.0.4:6000" },
		"10.0.0.4", 77, NULL, "given", NULL },
	{ "Azure, one node", 1, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCHAI_MPI_MASTER_NODE=10.0.0.5" },
		"10.0.0.5", 54965, "AZ_BATCHAI_MPI_MASTER_NODE", NULL, NULL },
	{ "Azure, one node, nothing said of it", 1, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZUREML_RUN_ID=x" }, "127.0.0.1", 54965,
		"all launchers on one host", "Azure ML's rule for one node", NULL },
	{ "Azure, one node, MASTER_* count for nothing", 1, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "AZ_BATCH_JOB_ID=x", "MASTER_ADDR=h",
			"MASTER_PORT=1" },
		"127.0.0.1", 54965, NULL, NULL, NULL },
	{ "Azure, all launchers on one host", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "AZ_BATCH_MASTER_NODE=h:1", "MASTER_PORT=9" },
		"127.0.0.1", 54965, "all launchers on one host", "Azure ML's rule for one node",
		NULL },
	{ "mpirun elsewhere, one node", 1, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_NAMESPACE=1", "AZURE_X=y" }, "127.0.0.1", 0,
		"one node", "one node: a free port", NULL },
	{ "mpirun elsewhere, all launchers on one host", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=3267297281" }, "127.0.0.1",
		16384 + 3267297281 % 16381, "all launchers on one host", "mpirun's job id", NULL },
	{ "... of Open MPI 5", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=prterun-gpu2-4711@1" },
		"127.0.0.1", 16384 + 247111 % 16381, NULL, "mpirun's job id", NULL },
	{ "... whose job has no id", 2, "mpirun", { { 0 } }, { "OMPI_COMM_WORLD_LOCAL_SIZE=2" },
		"127.0.0.1", 29500, NULL, "default", NULL },
	{ "... is below a given port", 2, "mpirun", { CLI(MASTER_PORT, "77") },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1" }, "127.0.0.1", 77, NULL,
		"given", NULL },
	{ "... is below MASTER_ADDR", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1", "MASTER_ADDR=h",
			"MASTER_PORT=1" },
		"h", 1, "MASTER_ADDR", "MASTER_PORT", NULL },
	{ "... is below the system's file", 2, "mpirun",
		{ { SET_MASTER_ADDR, "f", LEVEL_SYSTEM_FILE } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1" }, "f", 29500, "given",
		"default", NULL },
	{ "Azure, several launchers on each host", 4, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=2", "AZ_BATCH_MASTER_NODE=10.0.0.4:1" }, "10.0.0.4",
		6105, NULL, NULL, NULL },
	{ "Azure's variables say nothing without Open MPI", 1, NULL, { { 0 } },
		{ "AZ_BATCH_MASTER_NODE=10.0.0.4:6000" }, "127.0.0.1", 0, "one node", NULL, NULL },
	{ "an empty variable of Azure's is none", 2, "mpirun", { { 0 } },
		{ "AZ_BATCH_MASTER_NODE=", "MASTER_ADDR=h" }, "h", 29500, "MASTER_ADDR", NULL,
		NULL },

	{ "MASTER_ADDR", 2, NULL, { { 0 } }, { "MASTER_ADDR=h" }, "h", 29500, "MASTER_ADDR",
		"default", NULL },
	{ "MASTER_ADDR and the port beside it", 2, NULL, { { 0 } },
		{ "MASTER_ADDR=h", "MASTER_PORT=1234" }, "h", 1234, NULL, "MASTER_PORT", NULL },
	{ "MASTER_PORT beside an address that is not used", 2, NULL, { CLI(MASTER_ADDR, "h") },
		{ "MASTER_ADDR=x", "MASTER_PORT=1234" }, "h", 29500, "given", "default", NULL },
	{ "MASTER_PORT alone says nothing", 1, NULL, { { 0 } }, { "MASTER_PORT=1234" }, "127.0.0.1",
		0, NULL, NULL, NULL },
	{ "a given port beside MASTER_ADDR", 2, NULL, { CLI(MASTER_PORT, "9") },
		{ "MASTER_ADDR=h", "MASTER_PORT=1234" }, "h", 9, "MASTER_ADDR", "given", NULL },
	{ "one node: a foreign MASTER_ADDR is ignored, with its port", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=other", "MASTER_PORT=1234" }, "127.0.0.1", 0, "one node", NULL,
		"MASTER_ADDR=other is not this host" },
	{ "one node: our own name is not foreign", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=node7", "MASTER_PORT=1234" }, "node7", 1234, "MASTER_ADDR",
		"MASTER_PORT", NULL },
	{ "one node: our own name with its domain", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=node7.example.org" }, "node7.example.org", 0, "MASTER_ADDR", NULL,
		NULL },
	{ "one node: our name in another domain is foreign", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=node7.example.com" }, "127.0.0.1", 0, "one node", NULL,
		"not this host" },
	{ "one node: a name that begins as ours is foreign", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=node77" }, "127.0.0.1", 0, "one node", NULL, "not this host" },
	{ "one node: an address of ours", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=" ADDR_OF_US, "MASTER_PORT=1" }, ADDR_OF_US, 1, "MASTER_ADDR", NULL,
		NULL },
	{ "one node: an IPv6 address of ours, spelled another way", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=FE80:0:0::1" }, "FE80:0:0::1", 0, "MASTER_ADDR", NULL, NULL },
	{ "one node: loopback is never foreign", 1, NULL, { { 0 } }, { "MASTER_ADDR=127.1.2.3" },
		"127.1.2.3", 0, "MASTER_ADDR", NULL, NULL },
	{ "one node: localhost is never foreign", 1, NULL, { { 0 } }, { "MASTER_ADDR=localhost" },
		"localhost", 0, "MASTER_ADDR", NULL, NULL },
	{ "one node: a name that looks like loopback is foreign", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=127.example.com" }, "127.0.0.1", 0, "one node", NULL,
		"not this host" },

	{ "the system's file", 2, NULL,
		{ { SET_MASTER_ADDR, "f", LEVEL_SYSTEM_FILE },
			{ SET_MASTER_PORT, "5", LEVEL_SYSTEM_FILE } },
		{ NULL }, "f", 5, "given", "given", NULL },
	{ "the system's file is below MASTER_ADDR", 2, NULL,
		{ { SET_MASTER_ADDR, "f", LEVEL_SYSTEM_FILE } }, { "MASTER_ADDR=h" }, "h", 29500,
		"MASTER_ADDR", NULL, NULL },
	{ "the system's file is above Slurm", 2, "srun",
		{ { SET_MASTER_ADDR, "f", LEVEL_SYSTEM_FILE } }, { "SLURM_JOB_NODELIST=s[1-2]" },
		"f", 29500, NULL, NULL, NULL },
	{ "Slurm's first host", 2, "srun", { { 0 } }, { "SLURM_JOB_NODELIST=s[01-04],t" }, "s01",
		29500, "SLURM_JOB_NODELIST", "default", NULL },
	{ "the step's hosts are above the job's", 2, "srun", { { 0 } },
		{ "SLURM_JOB_NODELIST=s[01-04]", "SLURM_STEP_NODELIST=s03" }, "s03", 29500,
		"SLURM_STEP_NODELIST", NULL, NULL },
	{ "MASTER_ADDR is above Slurm", 2, "srun", { { 0 } },
		{ "SLURM_JOB_NODELIST=s[01-04]", "MASTER_ADDR=h" }, "h", 29500, "MASTER_ADDR", NULL,
		NULL },
	{ "Slurm on one node", 1, "srun", { { 0 } }, { "SLURM_JOB_NODELIST=s01" }, "127.0.0.1", 0,
		"one node", NULL, NULL },

	{ "standalone", 1, NULL, { CLI(STANDALONE, "1") }, { "MASTER_ADDR=h", "MASTER_PORT=1" },
		"127.0.0.1", 0, "given", "given", NULL },
	{ "standalone overrides given values, with a warning", 1, NULL,
		{ CLI(STANDALONE, "1"), CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "1") }, { NULL },
		"127.0.0.1", 0, "given", "given", "overridden" },
};

static const struct failing_row {
	const char *says;
	unsigned nnodes;
	const char *launcher;
	struct setting_given put[4];
	const char *env[6];
	const char *part[3];
} failing[] = {
	{ "several nodes and no way to know", 2, NULL, { { 0 } }, { NULL },
		{ "--master_addr", "MASTER_ADDR", "2 nodes" } },
	{ "... which c10d calls an endpoint", 2, NULL, { CLI(RDZV_BACKEND, "c10d") }, { NULL },
		{ "give all nodes --rdzv-endpoint HOST:PORT" } },
	{ "several nodes under Open MPI and no way to know", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=1" },
		{ "2 nodes (test)", "--master_addr", "MASTER_ADDR" } },
	{ "empty variables are no way to know", 2, "mpirun", { { 0 } },
		{ "MASTER_ADDR=", "AZ_BATCH_MASTER_NODE=" }, { "--master_addr" } },
	{ "a local size that is no number", 2, "mpirun", { { 0 } },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=x" }, { "OMPI_COMM_WORLD_LOCAL_SIZE: \"x\"" } },
	{ "a local size of 0", 2, "mpirun", { { 0 } }, { "OMPI_COMM_WORLD_LOCAL_SIZE=0" },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE: \"0\"" } },
	{ "Azure's node without a host", 2, "mpirun", { { 0 } }, { "AZ_BATCH_MASTER_NODE=:6000" },
		{ "AZ_BATCH_MASTER_NODE: \":6000\"" } },
	{ "Azure with a port that is none", 2, "mpirun", { { 0 } },
		{ "AZ_BATCH_MASTER_NODE=h:1", "MASTER_PORT=abc" }, { "MASTER_PORT: \"abc\"" } },
	{ "a port of the environment that is none", 2, NULL, { { 0 } },
		{ "MASTER_ADDR=h", "MASTER_PORT=65536" }, { "MASTER_PORT: \"65536\"", "65535" } },
	{ "port 0 of the environment", 2, NULL, { { 0 } }, { "MASTER_ADDR=h", "MASTER_PORT=0" },
		{ "MASTER_PORT: \"0\"" } },
	{ "port 0 for several nodes", 2, NULL, { CLI(MASTER_ADDR, "h"), CLI(MASTER_PORT, "0") },
		{ NULL }, { "given: port 0" } },
	{ "port 0 of an endpoint for several nodes", 2, NULL, { CLI(RDZV_ENDPOINT, "h:0") },
		{ NULL }, { "given: port 0" } },
	{ "an endpoint without a host", 2, NULL, { CLI(RDZV_ENDPOINT, ":1") }, { NULL },
		{ "given: \":1\" is not HOST[:PORT]" } },
	{ "an endpoint with a colon and no port", 2, NULL, { CLI(RDZV_ENDPOINT, "h:") }, { NULL },
		{ "given: \"h:\": \"\" is not a port" } },
	{ "an endpoint with a port that is none", 2, NULL, { CLI(RDZV_ENDPOINT, "h:x") }, { NULL },
		{ "given: \"h:x\": \"x\" is not a port", "65535" } },
	{ "... of IPv6", 2, NULL, { CLI(RDZV_ENDPOINT, "::1:x") }, { NULL }, { "\"x\"" } },
	{ "an endpoint with an open bracket", 2, NULL, { CLI(RDZV_ENDPOINT, "[fe80::1") }, { NULL },
		{ "given: \"[fe80::1\"" } },
	{ "an endpoint with empty brackets", 2, NULL, { CLI(RDZV_ENDPOINT, "[]:1") }, { NULL },
		{ "given: \"[]:1\"" } },
	{ "an endpoint with something behind the bracket", 2, NULL,
		{ CLI(RDZV_ENDPOINT, "[::1]x") }, { NULL }, { "given: \"[::1]x\"" } },
	{ "several addresses", 2, NULL, { CLI(MASTER_ADDR, "10.0.0.1 10.0.0.2") }, { NULL },
		{ "is not one address" } },
	{ "several addresses in the environment", 2, NULL, { { 0 } },
		{ "MASTER_ADDR=10.0.0.1,10.0.0.2" }, { "MASTER_ADDR: ", "is not one address" } },
	{ "an address with a port", 2, NULL, { CLI(MASTER_ADDR, "10.0.0.1:29500") }, { NULL },
		{ "given: \"10.0.0.1:29500\" has a port; use --master_port 29500",
			"the host alone here: 10.0.0.1" } },
	{ "... on one node", 1, NULL, { CLI(MASTER_ADDR, "127.0.0.1:29500") }, { NULL },
		{ "has a port; use --master_port 29500" } },
	{ "... of IPv6", 2, NULL, { CLI(MASTER_ADDR, "[fd00::1]:29500") }, { NULL },
		{ "has a port; use --master_port 29500", "the host alone here: fd00::1" } },
	{ "... without brackets", 2, NULL, { CLI(MASTER_ADDR, "::1:29400") }, { NULL },
		{ "has a port; use --master_port 29400", "the host alone here: ::1" } },
	{ "... of the environment", 2, NULL, { { 0 } }, { "MASTER_ADDR=h:1" },
		{ "MASTER_ADDR: \"h:1\" has a port; use --master_port 1" } },
	{ "... of the environment, of this one node", 1, NULL, { { 0 } },
		{ "MASTER_ADDR=" ADDR_OF_US ":1" },
		{ "MASTER_ADDR: \"" ADDR_OF_US ":1\" has a port" } },
	{ "... of one node's own address", 1, NULL, { CLI(LOCAL_ADDR, "10.0.0.9:5") }, { NULL },
		{ "has a port" } },
	{ "... of the system's file", 2, NULL, { { SET_MASTER_ADDR, "h:1", LEVEL_SYSTEM_FILE } },
		{ NULL }, { "has a port" } },
	{ "a URL as an address", 2, NULL, { CLI(MASTER_ADDR, "http://10.0.0.1/") }, { NULL },
		{ "given: \"http://10.0.0.1/\" is a URL; leave out http://" } },
	{ "a URL as an endpoint", 2, NULL, { CLI(RDZV_ENDPOINT, "tcp://h:29400") }, { NULL },
		{ "given: \"tcp://h:29400\" is a URL; leave out tcp://" } },
	{ "an address that is none", 2, NULL, { CLI(MASTER_ADDR, "a:b:c") }, { NULL },
		{ "given: \"a:b:c\" is not an address or the name of a host" } },
	{ "an address with a colon at its end", 2, NULL, { CLI(MASTER_ADDR, "h:") }, { NULL },
		{ "given: \"h:\" is not an address" } },
	{ "several colons that are no address", 2, NULL, { CLI(RDZV_ENDPOINT, "a:b:1") }, { NULL },
		{ "given: \"a:b:1\" is not HOST[:PORT]" } },
};

static void arrange(struct settings_fixture *b, const struct setting_given *put,
	struct facts *facts, const char *const *env)
{
	settings_fixture_make(b, false);
	settings_fixture_put_all(b, put, 4);
	*facts = (struct facts){ .env = env, .hostname = "node7.example.org" };
	vec_add(&b->arena, &facts->addresses, "127.0.0.1");
	vec_add(&b->arena, &facts->addresses, ADDR_OF_US);
	vec_add(&b->arena, &facts->addresses, "fe80::1");
}

static void test_found(void **state)
{
	const struct master_row *row = *state;
	const struct topology t = { .launcher = unit_launcher(row->launcher),
		.identity = {
			row->nnodes, 0, "test", "test", true, row->launcher && row->nnodes > 1 } };
	struct master m = { 0 };
	struct facts facts;
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	arrange(&b, row->put, &facts, row->env);
	rc = master_find(&d, &t, false, &m);
	assert_outcome(rc, 0, &b.why, NULL);
	assert_string_equal(m.addr, row->addr);
	assert_int_equal(m.port, row->port);
	if (row->addr_from)
		assert_string_equal(m.addr_from, row->addr_from);
	if (row->port_from)
		assert_string_equal(m.port_from, row->port_from);
	assert_true(m.addr_from && m.port_from);
	if (row->note) {
		assert_non_null(b.notes.first);
		assert_contains(b.notes.first->text, row->note);
	} else {
		assert_note(&b.notes, NOTE_INFO, NULL);
	}
	settings_fixture_done(&b);
}

static void test_failing(void **state)
{
	const struct failing_row *row = *state;
	const struct topology t = { .launcher = unit_launcher(row->launcher),
		.identity = {
			row->nnodes, 0, "test", "test", true, row->launcher && row->nnodes > 1 } };
	struct master m = { .addr = "untouched" };
	struct facts facts;
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	arrange(&b, row->put, &facts, row->env);
	rc = master_find(&d, &t, false, &m);
	assert_outcome(rc, -EINVAL, &b.why, row->part[0]);
	for (size_t i = 1; i < 3 && row->part[i]; i++)
		assert_contains(b.why.text, row->part[i]);
	assert_string_equal(m.addr, "untouched");
	settings_fixture_done(&b);
}

static const struct loopback_row {
	const char *says;
	enum loopback is;
	struct setting_given put[2];
	const char *env, *torch; /* NULL: none */
	const char *addr;        /* NULL: refused */
	const char *part;        /* of the sentence or the warning; NULL: nothing is said */
} loopbacks[] = {
	{ "IPv6 alone", LOOPBACK_V6, { { 0 } }, NULL, NULL, "::1", NULL },
	{ "... standalone", LOOPBACK_V6, { CLI(STANDALONE, "1") }, NULL, NULL, "::1", NULL },
	{ "... and the name", LOOPBACK_V6, { CLI(MASTER_ADDR, "localhost") }, NULL, NULL,
		"localhost", NULL },
	{ "... and IPv4's is given", LOOPBACK_V6, { CLI(MASTER_ADDR, "127.0.0.1") }, NULL, NULL,
		NULL, "the master address, 127.0.0.1 (given), is no address of this host: ::1 is" },
	{ "... or in the environment", LOOPBACK_V6, { { 0 } }, "MASTER_ADDR=127.1.2.3", NULL, NULL,
		"127.1.2.3 (MASTER_ADDR), is no address" },
	{ "none at all", LOOPBACK_NONE, { { 0 } }, NULL, NULL, "127.0.0.1",
		"this host has no loopback address" },
	{ "... standalone", LOOPBACK_NONE, { CLI(STANDALONE, "1") }, NULL, NULL, "127.0.0.1",
		"this host has no loopback address" },
	{ "... for torch", LOOPBACK_NONE, { { 0 } }, NULL, "2.9.1", NULL,
		"it has no loopback address at all (ip link set lo up)" },
	{ "... and IPv6's is given", LOOPBACK_NONE, { CLI(MASTER_ADDR, "::1") }, NULL, NULL, NULL,
		"the master address, ::1 (given), is no address of this host: it has no loopback" },
	{ "... and another is given", LOOPBACK_NONE, { CLI(MASTER_ADDR, ADDR_OF_US) }, NULL,
		"2.9.1", ADDR_OF_US, NULL },
};

static void test_loopback(void **state)
{
	const struct loopback_row *row = *state;
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 1, 0, "test", "test", true, false } };
	const char *const env[] = { row->env, NULL };
	struct setting_given put[4] = { row->put[0], row->put[1] };
	struct master m = { 0 };
	struct facts facts;
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	arrange(&b, put, &facts, env);
	facts.loopback = row->is;
	facts.torch_version = row->torch;
	rc = master_find(&d, &t, false, &m);
	assert_outcome(rc, row->addr ? 0 : -EINVAL, &b.why, row->addr ? NULL : row->part);
	if (row->addr) {
		assert_string_equal(m.addr, row->addr);
		assert_note(&b.notes, NOTE_WARNING, row->part);
	}
	settings_fixture_done(&b);
}

TESTS(master)
{
	static struct suite s;

	SUITE_ROWS(&s, test_found, found);
	SUITE_ROWS(&s, test_failing, failing);
	SUITE_ROWS(&s, test_loopback, loopbacks);
	return suite_run(&s);
}
