"""Results of a screening: exports, PRISMA 2020, methods paragraph, certificate."""
