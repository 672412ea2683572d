package emulator

import (
	"fmt"
	"strconv"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// concurrencyVariable tells a runtime how many workers it is to start: each asks
// for invocations on its own ("Building custom runtimes for Lambda Managed
// Instances"). aws-lambda-go does so by goroutines, lambdacontext.MaxConcurrency.
const concurrencyVariable = "AWS_LAMBDA_MAX_CONCURRENCY"

// mostConcurrent is the greatest PerExecutionEnvironmentMaxConcurrency of the
// Lambda API.
const mostConcurrent = 1600

// slots returns how many invocations a process of a function has at a time: what
// Options.Env, the function's own environment or its CapacityProviderConfig says,
// in this order, or one.
func slots(f *template.Function, o Options) (int, error) {
	value, set := o.Env[concurrencyVariable]
	if !set {
		value, set = f.Environment[concurrencyVariable]
	}
	if !set {
		return max(1, f.MaxConcurrency), nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostConcurrent {
		return 0, fmt.Errorf("emulator: function %s: %s is %q: set it to a number from 1 to %d",
			f.LogicalID, concurrencyVariable, value, mostConcurrent)
	}
	return n, nil
}
