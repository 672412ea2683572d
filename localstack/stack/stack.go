package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/mailer"
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

// Stack is a running template with all services that it needs.
type Stack struct {
	template *template.Template
	database *ddblocal.Server
	clearing *clearing.Service // nil unless the template is this project's
	mailer   *mailer.Service   // nil unless the template is this project's
	sqs      *elasticmq.Server // nil if the template has no queues and its functions read none
	emulator *emulator.Emulator
	sources  *eventsource.Mappings
	iam      *iam.Checker      // nil with Options.NoIAM
	gates    []*iam.Proxy      // before DynamoDB Local and ElasticMQ
	root     string            // folder of the template
	label    string            // random part of the generated names of tables and queues
	folder   string            // folder for the built binaries
	binaries map[string]string // paths by the logical IDs of the functions

	foreignDatabase bool // DynamoDB Local was running before, and other programs may use it
}

// Start builds and starts everything, and returns when the APIs answer. The stack runs until
// [Stack.Stop] is called or ctx ends. Stop must be called in both cases.
//
// Start fails if the template uses something that a local run doesn't support, if a parameter
// has no value (the error is then also a [template.MissingValueError]), if a function can't be
// built, if AWS would refuse a policy of a role (see package iam), if no DynamoDB Local is
// available (the error says how to get one), or if the port is in use. If Start fails, nothing
// is left running.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Progress = &lockedWriter{w: o.Progress} // two goroutines write to it
	if o.FunctionLog == nil {
		o.FunctionLog = os.Stderr
	}
	o.FunctionLog = &lockedWriter{w: o.FunctionLog} // the emulator, the sources and the proxies write to it
	s := &Stack{binaries: map[string]string{}}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start starts the services that the functions call, then the emulator with the functions, and
// then the event source mappings, which call functions. Stop stops them in the reverse order.
func (s *Stack) start(ctx context.Context, o Options) error {
	if err := isFree(o.Port); err != nil {
		return err
	}
	if o.Template == "" {
		if err := s.own(&o); err != nil {
			return err
		}
	}
	if err := s.read(o); err != nil {
		return err
	}
	if err := s.checkPolicies(o); err != nil {
		return err
	}
	s.sayUnchecked(o)
	all, err := s.plan()
	if err != nil {
		return err
	}
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return build(bothCtx, all, o.Progress) })
	both.Go(func() error {
		if err := s.startDatabase(bothCtx, o); err != nil {
			return err
		}
		return s.startSQS(bothCtx, o)
	})
	if err := both.Wait(); err != nil {
		return err
	}
	// Tables and queues may have other names now.
	if err := s.checkPolicies(o); err != nil {
		return err
	}
	if err := s.createQueues(ctx, o); err != nil {
		return err
	}
	if err := s.startEmulator(ctx, o); err != nil {
		return err
	}
	return s.startSources(ctx, o)
}

// isFree returns an error if the port is in use on the loopback interface. Port 0 is always
// free.
func isFree(port int) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("port %d is taken: end what listens there, or choose another port (up: PORT=NUMBER): %w", port, err)
	}
	return listener.Close() //nolint:wrapcheck // it never fails
}

// read reads the template, prints its warnings, and creates the folder for the binaries.
func (s *Stack) read(o Options) error {
	path, err := filepath.Abs(o.Template)
	if err != nil {
		return fmt.Errorf("find the template %s: %w", o.Template, err)
	}
	s.root = filepath.Dir(path)
	s.label = rand.Text()[:12]
	if err := s.readAgain(o); err != nil {
		return err
	}
	for _, warning := range s.template.Warnings {
		_, _ = fmt.Fprintln(o.Progress, "warning: "+warning)
	}
	if s.folder, err = os.MkdirTemp("", "lambdaidem-stack-"); err != nil {
		return fmt.Errorf("a folder for the functions' binaries: %w", err)
	}
	return nil
}

// readAgain reads the template, with the current result of rename for tables and queues.
func (s *Stack) readAgain(o Options) error {
	var err error
	s.template, err = template.Read(o.Template, template.Options{Parameters: o.Parameters, References: o.References, Rename: s.rename})
	if err != nil {
		return err //nolint:wrapcheck // it names the place
	}
	if o.Change != nil {
		o.Change(s.template)
	}
	return nil
}

// rename returns the name of a resource. It generates a name for a table or a queue in a server
// that was running before, because other programs may use the same name there.
func (s *Stack) rename(resourceType, name string) string {
	switch {
	case resourceType == "AWS::DynamoDB::Table" && s.foreignDatabase:
		return "local-" + name + "-" + s.label
	case resourceType == "AWS::SQS::Queue" && os.Getenv(elasticmq.EndpointVariable) != "":
		return "local-" + s.label + "-" + name // name comes last, because the name of a FIFO queue must end in .fifo
	}
	return name
}

// startEmulator starts the emulator. The services that the functions call must be running.
func (s *Stack) startEmulator(ctx context.Context, o Options) error {
	endpoint, err := s.gate(iam.DynamoDB, s.database.Endpoint(), o)
	if err != nil {
		return err
	}
	options := emulator.Options{
		Template:     s.template,
		Binary:       func(logicalID string) string { return s.binaries[logicalID] },
		Addr:         fmt.Sprintf("127.0.0.1:%d", o.Port),
		Endpoint:     endpoint,
		Env:          o.Env,
		Log:          o.FunctionLog,
		MaxProcesses: cmp.Or(o.MaxProcesses, 16),

		SourcesDelivered: true,
	}
	if s.iam != nil {
		options.AccessKeyID = iam.AccessKeyID
	}
	if o.Emulator != nil {
		o.Emulator(&options)
	}
	s.emulator, err = emulator.Start(ctx, options)
	return err
}

// startDatabase starts DynamoDB Local and creates the tables.
func (s *Stack) startDatabase(ctx context.Context, options Options) error {
	say(options.Progress, "starting DynamoDB Local")
	var err error
	s.database, err = ddblocal.Start(ctx, func(o *ddblocal.Options) {
		o.Progress = options.Progress
		if options.Database != nil {
			options.Database(o)
		}
	})
	if err != nil {
		return err
	}
	if !s.database.Owned() {
		// Other programs may use the server too, so the tables need generated names, as
		// CloudFormation generates them.
		s.foreignDatabase = true
		if err := s.readAgain(options); err != nil {
			return err
		}
	}
	return template.CreateTables(ctx, s.database.Client(), s.template.Tables)
}

// Stop stops the event source mappings, the functions, the emulator, the queues, DynamoDB Local
// and the outside services, in this order, and removes the binaries. If DynamoDB Local or SQS was
// running before, Stop only deletes the stack's tables or queues there. A second call does
// nothing.
func (s *Stack) Stop() error {
	var errs []error
	delivered := func() error { return nil }
	if s.sources != nil {
		// Close the sources and the emulator at the same time. The sources wait for
		// invocations that wait for a process, and only the emulator's Close refuses those.
		// The messages of a refused invocation are not lost: they are delivered again.
		closed := make(chan error, 1)
		go func(m *eventsource.Mappings) { closed <- m.Close() }(s.sources)
		delivered = func() error { return <-closed }
		s.sources = nil
	}
	if s.emulator != nil {
		errs = append(errs, s.emulator.Close())
		s.emulator = nil
	}
	errs = append(errs, delivered())
	for _, gate := range s.gates {
		errs = append(errs, gate.Close())
	}
	s.gates = nil
	if s.sqs != nil {
		errs = append(errs, s.stopSQS())
		s.sqs = nil
	}
	if s.database != nil {
		if !s.database.Owned() {
			errs = append(errs, s.deleteTables())
		}
		errs = append(errs, s.database.Stop())
		s.database = nil
	}
	if s.clearing != nil {
		errs = append(errs, s.clearing.Close())
		s.clearing = nil
	}
	if s.mailer != nil {
		errs = append(errs, s.mailer.Close())
		s.mailer = nil
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
		s.folder = ""
	}
	return errors.Join(errs...)
}

func (s *Stack) deleteTables() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, t := range s.template.Tables {
		_, err := s.database.Client().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(t.Name)})
		if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) { // it may not have been created
			errs = append(errs, fmt.Errorf("delete the table %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// URL returns the base URL of the HTTP API, without a final slash.
func (s *Stack) URL() string { return s.emulator.URL() }

// Emulator returns the Lambda emulator.
func (s *Stack) Emulator() *emulator.Emulator { return s.emulator }

// Database returns the DynamoDB Local.
func (s *Stack) Database() *ddblocal.Server { return s.database }

// Template returns the running template, with the actual names of the tables and queues.
func (s *Stack) Template() *template.Template { return s.template }

// Clearing returns the clearing house that the transfers function calls. It is nil unless the
// template is this project's.
func (s *Stack) Clearing() *clearing.Service { return s.clearing }

// Mailer returns the mail service that the notifications function calls. It is nil unless the
// template is this project's.
func (s *Stack) Mailer() *mailer.Service { return s.mailer }

// SQS returns the SQS with the template's queues. It is nil if the template has no queues and
// reads none.
func (s *Stack) SQS() *elasticmq.Server { return s.sqs }

// IAM returns the checker of the functions' permissions, which also counts which permissions were
// used. It is nil with Options.NoIAM.
func (s *Stack) IAM() *iam.Checker { return s.iam }

// Table returns the name of the table with this logical ID. It panics if the template has no
// such table.
func (s *Stack) Table(logicalID string) string {
	for _, t := range s.template.Tables {
		if t.LogicalID == logicalID {
			return t.Name
		}
	}
	panic("stack: the template has no table " + logicalID)
}

func say(w io.Writer, what string) {
	// Ignore a write error, because progress is not essential.
	_, _ = fmt.Fprintln(w, what+" …")
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
