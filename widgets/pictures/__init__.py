"""Pictures as values: scenes and charts, their colours and shapes, and every still form of them (SVG, page)."""
