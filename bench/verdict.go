package main

// verdict is the result of comparing an estimate with an aim.
type verdict string

const (
	met    verdict = "met"
	missed verdict = "missed"
	open   verdict = "too close to tell" // the aim is within the interval
)

// atMost returns the verdict on whether the estimate is at most bound.
func (e estimate) atMost(bound float64) verdict {
	switch {
	case e.high <= bound:
		return met
	case e.low > bound:
		return missed
	default:
		return open
	}
}

// atLeast returns the verdict on whether the estimate is at least bound.
func (e estimate) atLeast(bound float64) verdict {
	switch {
	case e.low >= bound:
		return met
	case e.high < bound:
		return missed
	default:
		return open
	}
}
