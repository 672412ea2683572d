package emf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options are an observer's settings. A field that is its zero value has its
// default.
type Options struct {
	// Namespace is that of the metrics: 1 to 255 letters, digits and . - _ / # :,
	// the first no colon; those that begin with "AWS/" are AWS's own. Default:
	// "Lambdaidem".
	Namespace string
	// Service is the dimension of that name: what the function is a part of.
	// Default: Function.
	Service string
	// Function is the dimension of that name. Default: the Lambda function's name;
	// outside Lambda the program's file name.
	Function string
	// NoRoutes leaves the dimensions [service, function, route] out: CloudWatch
	// charges for each metric with each combination of values. Default: false.
	NoRoutes bool
	// Records adds to each document which record it is of, and what came of the call:
	// the members "record" and "outcome", as a log line of [lambdaidem.SlogObserver]
	// has them. They are no dimensions and cost nothing but their bytes: with them
	// CloudWatch Logs Insights tells a record's history. Default: false.
	Records bool
	// Bypassed counts calls that run unguarded by method, by a skip, or for lack of
	// an optional key. Each is a document, of every GET for one. Default: false.
	Bypassed bool
	// Writer is written to, one line a call, from one goroutine at a time. Its
	// errors are ignored: there is nobody to tell. Default: os.Stdout, as it is when
	// the observer is made.
	Writer io.Writer
	// Clock tells the time of documents, which must be the real one: CloudWatch
	// refuses what is more than two weeks old or two hours ahead. It is not that of
	// lambdaidem.Options. Default: time.Now. For tests.
	Clock func() time.Time
}

func (o Options) settle() Options {
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

// check panics on what is invalid, and names the field.
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
