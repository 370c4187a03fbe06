"""The tape as a recording tells it: ground on which the views of graphs stand."""
