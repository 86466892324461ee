"""HTTP: routes, wire rules, problems."""
