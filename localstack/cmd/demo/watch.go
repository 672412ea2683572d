package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// watchFunction is the logical ID of functions/watch in template.yaml.
const watchFunction = "WatchFunction"

// watch invokes functions/watch in place of its schedule, which the emulator does not run.
type watch struct {
	invoke func(ctx context.Context, function string, payload []byte) (emulator.Result, error)
}

// sighting is what one run of functions/watch found.
type sighting struct {
	told    bool               // the metrics had a number of dead leases or held records
	dead    float64            // number of dead leases and held records in the metrics
	byRoute map[string]float64 // the same by route, without zeros
	named   []named
}

// named is a lease that the log names.
type named struct {
	Record, Route string
	Attempt       int
	Held          bool
}

func (w watch) look(ctx context.Context) (sighting, error) {
	got, err := w.invoke(ctx, watchFunction, []byte(`{"detail-type":"Scheduled Event"}`))
	switch {
	case err != nil:
		return sighting{}, fmt.Errorf("invoke %s: %w", watchFunction, err)
	case got.FunctionError != "":
		return sighting{}, fmt.Errorf("%s failed: %s: %s", watchFunction, got.FunctionError, got.Payload)
	}
	return sightingIn(got.LogTail)
}

// sightingIn parses the log of one run. It returns an error if the metrics are invalid.
func sightingIn(log []byte) (sighting, error) {
	s := sighting{byRoute: map[string]float64{}}
	for line := range bytes.Lines(log) {
		doc, err := metrics.Parse(line)
		if errors.Is(err, metrics.ErrNoDocument) {
			var n named
			if json.Unmarshal(line, &n) == nil && n.Record != "" {
				s.named = append(s.named, n)
			}
			continue
		}
		if err != nil {
			return s, fmt.Errorf("%s wrote metrics that can't be read: %w", watchFunction, err)
		}
		for _, d := range doc.Data {
			route, ofRoute := d.Dimensions["route"]
			switch n := d.Values[0]; {
			case d.Name != "DeadLeases" && d.Name != "HeldRecords":
			case !ofRoute:
				s.told, s.dead = true, s.dead+n
			case n > 0:
				s.byRoute[route] += n
			}
		}
	}
	return s, nil
}

// String returns the numbers from the metrics and the leases from the log.
func (s sighting) String() string {
	if !s.told {
		return "no metrics"
	}
	text := fmt.Sprintf("DeadLeases %g", s.dead)
	for _, route := range slices.Sorted(maps.Keys(s.byRoute)) {
		text += fmt.Sprintf(", %g of %s", s.byRoute[route], route)
	}
	for _, n := range s.named {
		text += fmt.Sprintf("; %s, attempt %d, held %t", n.Record, n.Attempt, n.Held)
	}
	return text
}
