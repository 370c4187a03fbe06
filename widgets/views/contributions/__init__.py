"""ContributionView: a backward walk rule by rule, as products and running sums."""
