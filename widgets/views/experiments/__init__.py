"""Charts of experiments about differentiation, each folded from what a function of `lab.experiments` told."""
