package stack

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine of a stack runs after Stop.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
