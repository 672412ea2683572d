package main

import "path/filepath"

// peer is an idempotency utility that takes part in the comparison.
type peer struct {
	Name    string
	version string // name and version of the package; empty for this toolkit

	command []string        // starts the driver
	dir     string          // the working directory of the driver
	env     []string        // additional environment variables of the driver
	lacks   map[need]string // the features that the peer doesn't have, with the reason for the page

	idAttribute, ttlAttribute string // attributes of the peer's table
}

// Paths from the project's folder.
const (
	sources = "bench/peers"  // the sources of the drivers
	built   = ".build/peers" // everything that this program builds or installs
)

// peers returns the peers, in the order of the page. root is the project's folder.
func peers(root string) []*peer {
	build := func(name string) string { return filepath.Join(root, built, name) }
	python := filepath.Join(root, sources, "python")
	const (
		unsigned = "it doesn't sign fingerprints"
		cantWait = "a duplicate can't wait: it gets IdempotencyAlreadyInProgressError"
	)
	return []*peer{
		{
			Name:        "lambdaidem",
			command:     []string{build("toolkit")},
			idAttribute: "id", ttlAttribute: "expiration",
		},
		{
			Name: "Powertools Python", version: "aws-lambda-powertools 3.37.0",
			command: []string{build("venv/bin/python"), "powertools.py"}, dir: python,
			idAttribute: "id", ttlAttribute: "expiration",
			lacks: map[need]string{
				needsWait:   cantWait,
				needsSecret: unsigned,
			},
		},
		{
			Name: "Powertools TypeScript", version: "@aws-lambda-powertools/idempotency 2.35.0",
			command:     []string{"node", build("node/powertools.mjs")},
			idAttribute: "id", ttlAttribute: "expiration",
			lacks: map[need]string{
				needsWait:   cantWait,
				needsSecret: unsigned,
			},
		},
		{
			Name: "idemkit", version: "idemkit 1.0.2",
			command: []string{build("venv/bin/python"), "idemkit_driver.py"}, dir: python,
			idAttribute: "effective_key", ttlAttribute: "ttl",
			lacks: map[need]string{needsSecret: unsigned},
		},
		{
			Name: "Fiber", version: "github.com/gofiber/fiber/v3 v3.1.0",
			command:     []string{build("fiber")},
			idAttribute: "id", ttlAttribute: "expiration",
			lacks: map[need]string{
				needsStore:  "its records are in the process's memory here",
				needsLease:  "its lock lasts until the handler returns or the process ends",
				needsSecret: unsigned,
			},
		},
	}
}
