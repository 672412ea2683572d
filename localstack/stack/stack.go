package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

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
