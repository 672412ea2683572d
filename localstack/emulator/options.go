package emulator

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options configure Start.
type Options struct {
	// Template says which functions and routes there are. Required.
	Template *template.Template

	// Binary returns the path of a function's bootstrap, by the function's
	// logical ID. Required.
	Binary func(logicalID string) string

	// Addr is where the HTTP API and the Lambda Invoke API listen, such as
	// 127.0.0.1:3000. Anything but a loopback address is refused.
	// Default: 127.0.0.1 and a free port.
	Addr string

	// Region is AWS_REGION of the functions. Default: the template's.
	Region string

	// Endpoint is AWS_ENDPOINT_URL_DYNAMODB of the functions, such as
	// http://127.0.0.1:8000. Default: not set.
	Endpoint string

	// AccessKeyID returns the access key ID of a function's credentials, by the
	// function's logical ID. Default: "local" for all functions.
	AccessKeyID func(logicalID string) string

	// Env is added to every function's environment, over the template's. With
	// AWS_LAMBDA_MAX_CONCURRENCY, 1 to 1600, a process has so many invocations
	// at a time, as on Lambda Managed Instances; EMULATOR.md says what else that
	// changes. Default: one.
	Env map[string]string

	// Log gets what the functions write, each line after the function's
	// logical ID and process id, and what the emulator has to say.
	// Default: os.Stderr.
	Log io.Writer

	// Progress gets what must be seen at the start: that tokens are not
	// verified, and which events are not emulated. Default: Log.
	Progress io.Writer

	// SourcesDelivered says that somebody else delivers the events of the template's
	// Sources, as package eventsource does. Default: the start names them among
	// the events that are not emulated.
	SourcesDelivered bool

	// Middleware wraps the handler of every API, function URL and of the Lambda Invoke API,
	// for example to watch requests. It can use [TraceID] to relate a request to its invocation.
	// Default: nil, which wraps nothing.
	Middleware func(http.Handler) http.Handler

	// Observe is called when a process or an invocation begins or ends. It is called by
	// several goroutines at once, which wait for it, and must not call the emulator.
	// Default: nil.
	Observe func(Event)

	// MaxProcesses bounds the processes of one function, whatever each of them
	// can have at a time. Default: 50.
	MaxProcesses int

	// Throttle refuses an invocation when MaxProcesses are busy (429), as
	// Lambda does. Default: it waits in line.
	Throttle bool

	// InitTimeout is how long a process may take from its start to its first
	// call of the Runtime API. Default: 10 s, as in Lambda.
	InitTimeout time.Duration

	// KillDelay lets a process live on for so long after its function's
	// Timeout. The caller gets the timeout's answer in time, and the process
	// never serves again. Tests use it to see what a late attempt does.
	// Default: 0, killed at the timeout, as in Lambda. It says nothing of a
	// function with AWS_LAMBDA_MAX_CONCURRENCY, which no timeout kills.
	KillDelay time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Template == nil {
		return o, errors.New("emulator: Options.Template is missing")
	}
	if o.Binary == nil {
		return o, errors.New("emulator: Options.Binary is missing")
	}
	if o.MaxProcesses < 0 || o.InitTimeout < 0 || o.KillDelay < 0 {
		return o, errors.New("emulator: Options.MaxProcesses, InitTimeout and KillDelay can't be negative")
	}
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:0")
	o.Region = cmp.Or(o.Region, o.Template.Region, "us-east-1")
	o.MaxProcesses = cmp.Or(o.MaxProcesses, 50)
	o.InitTimeout = cmp.Or(o.InitTimeout, 10*time.Second)
	if o.AccessKeyID == nil {
		o.AccessKeyID = func(string) string { return "local" }
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	if o.Middleware == nil {
		o.Middleware = func(h http.Handler) http.Handler { return h }
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	return o, nil
}
