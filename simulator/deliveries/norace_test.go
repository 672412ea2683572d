//go:build !race

package deliveries

const raceEnabled = false
