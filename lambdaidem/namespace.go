package lambdaidem

import (
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// defaultNamespace returns the name of the Lambda function. Outside Lambda it returns the
// package path of the program or, if that is unknown or "command-line-arguments", the name
// of the executable. The result must be the same after a restart or a rebuild, or the
// program would not find its records.
func defaultNamespace() string {
	if lambdacontext.FunctionName != "" {
		return lambdacontext.FunctionName
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" && info.Path != "command-line-arguments" {
		return info.Path
	}
	return filepath.Base(os.Args[0])
}
