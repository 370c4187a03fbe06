"""Pictures that leave the notebook: pages that play, SVGs that move, and how much of a recording fits in them."""
