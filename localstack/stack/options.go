package stack

import (
	"io"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options configure [Start]. The zero value of every field is its default.
type Options struct {
	// Template is the path of a SAM template whose functions are built and run. They must
	// be in Go, have a Makefile, or be built already. Default: this project's
	// template.yaml, with the services that it needs. The working directory must then be
	// in a checkout of this project.
	Template string

	// Parameters are the values of the template's Parameters, and References the values
	// of its dynamic references, as in [template.Options]. Default: none. For this
	// project's template, the parameters that a local run needs are set too.
	Parameters, References map[string]string

	// Port is the TCP port of the HTTP API on 127.0.0.1. Default: 0, a free port.
	Port int

	// MaxProcesses is the maximum number of processes of one function. Further requests
	// wait for a process. Default: 16.
	MaxProcesses int

	// Env is added to the environment of every function. For this project's template it
	// also has DEMO=1, unless Env overrides it. With DEMO=1, X-Demo- headers of a request
	// can make the functions slow or fail.
	Env map[string]string

	// Change may change the template before anything starts, for example to shorten a
	// timeout. It is called a second time if the tables need generated names. Default: nil.
	Change func(*template.Template)

	// Database may change the options of DynamoDB Local, for example to start a separate
	// server or to store its data in a folder. Default: nil, the defaults of
	// [ddblocal.Start].
	Database func(*ddblocal.Options)

	// Queues may change the options of ElasticMQ. Default: nil, the defaults of
	// [elasticmq.Start].
	Queues func(*elasticmq.Options)

	// QueueEndpoint receives the endpoint of SQS and returns the endpoint that the
	// functions use, such as that of a proxy. Default: nil, the same endpoint.
	QueueEndpoint func(endpoint string) string

	// Emulator may change the options of the emulator. DynamoDB Local is running when it
	// is called. It can put a proxy between DynamoDB Local and the functions with the
	// option Endpoint, or let processes outlive their timeout. Default: nil.
	Emulator func(*emulator.Options)

	// NoIAM lets the functions call DynamoDB and SQS whether or not their roles allow it.
	// Default: false, and what the template's policies don't allow is refused as AWS
	// refuses it. Other clients than the functions are never refused.
	NoIAM bool

	// Progress receives a line when something begins that takes seconds. Default:
	// os.Stderr.
	Progress io.Writer

	// FunctionLog receives the output of the functions, the logs of the emulator and of the
	// event source mappings, and a line for each kind of request that a function's role does
	// not allow. Default: os.Stderr.
	FunctionLog io.Writer
}
