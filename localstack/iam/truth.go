package iam

// truth is the result of evaluating a condition or a statement. It is undecided if it depends on a
// value that only AWS knows.
type truth int

const (
	no truth = iota
	yes
	undecided
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}
