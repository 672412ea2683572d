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
	"github.com/lambdaidem/toolkit/localstack/mailer"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options say how [Start] starts a stack. The zero value of every field is its
// default.
type Options struct {
	// Template is the path of a SAM template, whose functions are built and run:
	// those of Go, see EMULATOR.md. Default: the template.yaml of the checkout of
	// this project that the working directory is in, with all that it needs.
	Template string

	// Parameters are values of the template's Parameters, and References those of
	// its dynamic references, as in [template.Options]. Default: none; for this
	// project's own template those that a local run needs.
	Parameters, References map[string]string

	// Port is where the HTTP API listens, on 127.0.0.1. Default: a free one.
	Port int

	// MaxProcesses bounds the processes of one function; further requests wait
	// in line. Default: 16.
	MaxProcesses int

	// Env is added to every function's environment. With this project's own
	// template DEMO=1, which makes the functions honour the X-Demo- headers (see
	// functions/payments/demo.go), is there unless it is overridden here.
	Env map[string]string

	// Change may alter what the template says before anything starts: shorten a
	// timeout, say. It is called again if tables have to have other names. Default:
	// nothing is altered.
	Change func(*template.Template)

	// Database may set how DynamoDB Local is started: apart from others', or
	// with a folder to keep its data in. Default: as [ddblocal.Start] does.
	Database func(*ddblocal.Options)

	// Queues may set how ElasticMQ is started. Default: as [elasticmq.Start] does.
	Queues func(*elasticmq.Options)

	// QueueEndpoint is given the endpoint of SQS and returns the one that the functions
	// call: that of a proxy, say. Default: the same.
	QueueEndpoint func(endpoint string) string

	// Emulator may alter how the emulator is started, when DynamoDB Local
	// answers already: put something between it and the functions, by Endpoint,
	// or let processes outlive their timeout. Default: nothing is altered.
	Emulator func(*emulator.Options)

	// Progress gets a line when something that takes seconds begins. Default:
	// os.Stderr.
	Progress io.Writer

	// FunctionLog gets what the functions write and what the emulator has to
	// say. Default: os.Stderr.
	FunctionLog io.Writer
}

// Stack is everything, running.
type Stack struct {
	template *template.Template
	database *ddblocal.Server
	clearing *clearing.Service // nil but with this project's own template
	mailer   *mailer.Service   // nil, as clearing
	sqs      *elasticmq.Server // nil: the template has no queues
	emulator *emulator.Emulator
	sources  *eventsource.Mappings
	root     string            // of the template
	label    string            // what tells this stack's tables and queues from others'
	folder   string            // of what is built
	binaries map[string]string // by the functions' logical IDs

	foreignDatabase bool // DynamoDB Local was there before, and others may use it
}

// Start builds and starts everything, and returns when it answers. The stack
// runs until [Stack.Stop], or until ctx ends; then Stop must still be called.
//
// It fails, with nothing left running, when there is something in the template
// that a local run doesn't know, when a parameter has no value (then the error is
// a [template.MissingValueError] too), when the functions can't be built, when no
// DynamoDB Local can be had (the error names the ways to get one) or when the
// port is taken.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Progress = &lockedWriter{w: o.Progress} // two goroutines report to it
	if o.FunctionLog == nil {
		o.FunctionLog = os.Stderr
	}
	o.FunctionLog = &lockedWriter{w: o.FunctionLog} // the emulator and the sources write to it
	s := &Stack{binaries: map[string]string{}}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start starts one thing after the other, what functions call before them and
// what calls functions after them; Stop ends all in the other order.
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
	if err := s.createQueues(ctx, o); err != nil {
		return err
	}
	if err := s.startEmulator(ctx, o); err != nil {
		return err
	}
	return s.startSources(ctx, o)
}

// isFree returns an error if a port of loopback is taken: before anything is built. 0
// is a free port of the system's choice.
func isFree(port int) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("port %d is taken: end what listens there, or choose another port (up: PORT=NUMBER): %w", port, err)
	}
	return listener.Close() //nolint:wrapcheck // it never fails
}

// read reads the template, and makes the folder for what is built of it.
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

// readAgain reads the template with the names that tables and queues have now.
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

// rename gives names of their own to what stands beside others'.
func (s *Stack) rename(resourceType, name string) string {
	switch {
	case resourceType == "AWS::DynamoDB::Table" && s.foreignDatabase:
		return "local-" + name + "-" + s.label
	case resourceType == "AWS::SQS::Queue" && os.Getenv(elasticmq.EndpointVariable) != "":
		return "local-" + s.label + "-" + name // .fifo stays at its end
	}
	return name
}

// startEmulator starts the emulator, with all that the functions call behind it.
func (s *Stack) startEmulator(ctx context.Context, o Options) error {
	options := emulator.Options{
		Template:     s.template,
		Binary:       func(logicalID string) string { return s.binaries[logicalID] },
		Addr:         fmt.Sprintf("127.0.0.1:%d", o.Port),
		Endpoint:     s.database.Endpoint(),
		Env:          o.Env,
		Log:          o.FunctionLog,
		MaxProcesses: cmp.Or(o.MaxProcesses, 16),

		SourcesDelivered: true,
	}
	if o.Emulator != nil {
		o.Emulator(&options)
	}
	var err error
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
		// Others may use it too: our tables need names of their own, as
		// CloudFormation would give them.
		s.foreignDatabase = true
		if err := s.readAgain(options); err != nil {
			return err
		}
	}
	return template.CreateTables(ctx, s.database.Client(), s.template.Tables)
}

// Stop ends the event source mappings, the functions, the emulator, the queues,
// DynamoDB Local and the services outside, in this order, and removes what was built.
// A DynamoDB Local or an SQS that was there before stays, without our tables and
// queues. Stopping twice does nothing.
func (s *Stack) Stop() error {
	var errs []error
	delivered := func() error { return nil }
	if s.sources != nil {
		// Beside the emulator: it refuses what waits in line there, which the sources
		// would wait for. What was not begun comes again.
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
		if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) { // it may not have been made
			errs = append(errs, fmt.Errorf("delete the table %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// URL returns the base URL of the HTTP API, without a slash at its end.
func (s *Stack) URL() string { return s.emulator.URL() }

// Emulator returns the Lambda emulator.
func (s *Stack) Emulator() *emulator.Emulator { return s.emulator }

// Database returns the DynamoDB Local.
func (s *Stack) Database() *ddblocal.Server { return s.database }

// Template returns what runs, with the names that the tables have.
func (s *Stack) Template() *template.Template { return s.template }

// Clearing returns the clearing house that the transfers function of this
// project's own template calls; nil with any other template.
func (s *Stack) Clearing() *clearing.Service { return s.clearing }

// Mailer returns the service that the notifications function of this project's own
// template calls; nil with any other template.
func (s *Stack) Mailer() *mailer.Service { return s.mailer }

// SQS returns the SQS with the template's queues; nil if the template has none.
func (s *Stack) SQS() *elasticmq.Server { return s.sqs }

// Table returns the name of a table by its logical ID in the template. It panics
// if there is none.
func (s *Stack) Table(logicalID string) string {
	for _, t := range s.template.Tables {
		if t.LogicalID == logicalID {
			return t.Name
		}
	}
	panic("stack: the template has no table " + logicalID)
}

func say(w io.Writer, what string) {
	// A report that can't be written must not stop what it reports on.
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
