"""Study plan, profiles, features, encoder, sufficient statistics, their sums, their validation and bootstrap replicates."""
