package lambdaidem

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
)

// SwitchOff is the name of an environment variable that switches off every guard of a
// process, for local runs. If its value is true (or 1, or another value that
// strconv.ParseBool understands as true), all calls run unguarded. New then logs a
// warning on slog.Default(), and each call sends an [EventSwitchedOff]. New panics if
// the value is not a boolean. Default: not set.
const SwitchOff = "LAMBDAIDEM_OFF"

func switchedOff() bool {
	value := os.Getenv(SwitchOff)
	if value == "" {
		return false
	}
	off, err := strconv.ParseBool(value)
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: New: the environment's %s is %q; it must be true or false, or not be set", SwitchOff, value))
	}
	if off {
		slog.Default().Warn("idempotency is off: every call runs unguarded, and a retry runs again", "by", SwitchOff+"="+value)
	}
	return off
}
