"""Pictures on the screen: hosts in the browser, what is sent to them and when, the twin of a saved notebook."""
