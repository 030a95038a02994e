/* siphash.c - see siphash.h */
#include "common/siphash.h"

#include <endian.h>
#include <string.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline uint64_t load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof word);
	return le64toh(word);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 = rotl(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_SIZE], const uint8_t *bytes, size_t len)
{
	const uint64_t k0 = load(key), k1 = load(key + 8);
	struct sip s = { k0 ^ 0x736f6d6570736575U, k1 ^ 0x646f72616e646f6dU,
		k0 ^ 0x6c7967656e657261U, k1 ^ 0x7465646279746573U };
	uint8_t last[8] = { 0 };
	size_t at = 0;

	for (; len - at >= 8; at += 8)
		sip_word(&s, load(bytes + at));
	if (len > at)
		memcpy(last, bytes + at, len - at);
	last[7] = (uint8_t)len;
	sip_word(&s, load(last));
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
