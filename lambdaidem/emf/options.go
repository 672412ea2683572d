package emf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options are the options of [New]. A field with its zero value gets its default.
type Options struct {
	// Namespace is the CloudWatch namespace of the metrics. It has 1 to 255 letters,
	// digits and the characters . - _ / # :, and must not begin with a colon or with
	// "AWS/", which is reserved for AWS. Default: "Lambdaidem".
	Namespace string
	// Service is the value of the dimension "service": the name of the service that the
	// function is a part of. Default: the value of Function.
	Service string
	// Function is the value of the dimension "function". Default: the name of the Lambda
	// function or, outside Lambda, the program's file name.
	Function string
	// NoRoutes omits the set of dimensions [service, function, route]. It saves money:
	// CloudWatch charges for each metric with each combination of dimension values.
	// Default: false.
	NoRoutes bool
	// Records adds the members "record" and "outcome" to each document: the record's id
	// and the event's kind. They have the same names and values as in the log lines of
	// [lambdaidem.SlogObserver], and let CloudWatch Logs Insights list the history of a
	// record. They are not dimensions, so they cost only their bytes. Default: false.
	Records bool
	// Bypassed makes the Observer also count the calls that run unguarded because of their HTTP
	// method, the guard's Options.Skip, or a missing key that is optional. Each of these calls then
	// writes a document, so that every GET, for example, writes one. Default: false; these calls
	// are then not counted.
	Bypassed bool
	// Writer receives the documents: one line per call of Write, and one call at a time.
	// Its errors are ignored, because there is no caller to return them to. Default: the
	// value of os.Stdout when New is called.
	Writer io.Writer
	// Clock returns the time for a document's timestamp. Set it in tests only, because
	// CloudWatch rejects metrics that are more than two weeks old or more than two hours
	// in the future. It is independent of the guard's Options.Clock. Default: time.Now.
	Clock func() time.Time
}

// withDefaults returns the options with the defaults filled in.
func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "Lambdaidem"
	}
	if o.Function == "" {
		o.Function = os.Getenv("AWS_LAMBDA_FUNCTION_NAME")
	}
	if o.Function == "" {
		o.Function = filepath.Base(os.Args[0])
	}
	if o.Service == "" {
		o.Service = o.Function
	}
	if o.Writer == nil {
		o.Writer = os.Stdout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// check panics if an option is invalid. The panic's text names the field.
func (o Options) check() {
	if !validNamespace(o.Namespace) {
		panic(fmt.Sprintf("emf: Options.Namespace is %q; it must be 1 to 255 of the characters that CloudWatch allows, and not one of AWS's", o.Namespace))
	}
}

func validNamespace(s string) bool {
	return len(s) <= 255 && s[0] != ':' && !strings.HasPrefix(s, "AWS/") && !strings.ContainsFunc(s, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune(".-_/#:", r)
	})
}
