package interval

// Verdict is the result of comparing an estimate with an aim.
type Verdict string

// The verdicts.
const (
	Met    Verdict = "met"
	Missed Verdict = "missed"
	Open   Verdict = "too close to tell" // the aim is within the interval
)

// AtMost returns the verdict on whether the estimate is at most bound.
func (e Estimate) AtMost(bound float64) Verdict {
	switch {
	case e.High <= bound:
		return Met
	case e.Low > bound:
		return Missed
	default:
		return Open
	}
}

// AtLeast returns the verdict on whether the estimate is at least bound.
func (e Estimate) AtLeast(bound float64) Verdict {
	switch {
	case e.Low >= bound:
		return Met
	case e.High < bound:
		return Missed
	default:
		return Open
	}
}
