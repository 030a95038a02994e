/* natural.h - the order in which people count names: node2 before node10. Pure. */
#ifndef LAUNCHD_COMMON_NATURAL_H
#define LAUNCHD_COMMON_NATURAL_H

/* Below, equal to or above 0, as strcmp(3); numbers in the names count as numbers, whatever their
 * length. 0 only for names that are the same to the byte: "n1" comes before "n01". */
int natural_compare(const char *a, const char *b);

#endif
