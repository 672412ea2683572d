package main

import "path/filepath"

// peer is one thing that is compared.
type peer struct {
	Name    string
	version string // what its package manager calls this release; empty for this toolkit

	command []string        // its driver
	dir     string          // where the driver runs
	env     []string        // further environment variables of the driver
	lacks   map[need]string // what the peer doesn't have, and the reason that the page gives

	// The attributes of its table.
	idAttribute, ttlAttribute string
}

// The folder of the sources, and the one of everything that is installed or built. Both are
// seen from the project's folder.
const (
	sources = "bench/peers"
	built   = ".build/peers"
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
