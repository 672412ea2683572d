package stack

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that a stack began goes on after Stop.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
