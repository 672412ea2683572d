//go:build race

package deliveries

const raceEnabled = true
