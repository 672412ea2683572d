package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options say how [Start] starts a stack. The zero value of every field is its
// default.
type Options struct {
	// Port is where the HTTP API listens, on 127.0.0.1. Default: a free one.
	Port int

	// MaxProcesses bounds the processes of one function; further requests wait
	// in line. Default: 16.
	MaxProcesses int

	// Env is added to every function's environment. DEMO=1, which makes the
	// functions honour the X-Demo- headers (see functions/payments/demo.go), is
	// there unless it is overridden here.
	Env map[string]string

	// Change may alter what the template says before anything starts: shorten a
	// timeout, say. Default: nothing is altered.
	Change func(*template.Template)

	// Database may set how DynamoDB Local is started: apart from others', or
	// with a folder to keep its data in. Default: as [ddblocal.Start] does.
	Database func(*ddblocal.Options)

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
	clearing *clearing.Service
	emulator *emulator.Emulator
	folder   string // of the binaries
}

// Start builds and starts everything, and returns when it answers. The stack
// runs until [Stack.Stop], or until ctx ends; then Stop must still be called.
//
// It fails, with nothing left running, when the functions can't be built, when
// no DynamoDB Local can be had (the error names the ways to get one) or when
// the port is taken.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Progress = &lockedWriter{w: o.Progress} // two goroutines report to it
	s := &Stack{}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if s.clearing, err = clearing.Start(); err != nil {
		return err
	}
	s.template, err = template.Read(filepath.Join(root, "template.yaml"), template.Options{
		Parameters: map[string]string{"JwtIssuer": Issuer, "JwtAudience": audience, "ClearingUrl": s.clearing.URL()},
	})
	if err != nil {
		return err
	}
	if o.Change != nil {
		o.Change(s.template)
	}
	if s.folder, err = os.MkdirTemp("", "lambdaidem-stack-"); err != nil {
		return fmt.Errorf("a folder for the functions' binaries: %w", err)
	}

	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.build(bothCtx, root, o.Progress) })
	both.Go(func() error { return s.startDatabase(bothCtx, o) })
	if err := both.Wait(); err != nil {
		return err
	}

	env := map[string]string{"DEMO": "1"}
	maps.Copy(env, o.Env)
	options := emulator.Options{
		Template:     s.template,
		Binary:       s.binary,
		Addr:         fmt.Sprintf("127.0.0.1:%d", o.Port),
		Endpoint:     s.database.Endpoint(),
		Env:          env,
		Log:          o.FunctionLog,
		MaxProcesses: cmp.Or(o.MaxProcesses, 16),
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
		// Others may use it too: our tables need names of their own, as
		// CloudFormation would give them.
		rename(s.template, "local-%s-"+rand.Text()[:12])
	}
	return template.CreateTables(ctx, s.database.Client(), s.template.Tables)
}

// rename gives every table a new name, in the functions' environment too.
func rename(t *template.Template, format string) {
	for i := range t.Tables {
		table := &t.Tables[i]
		old := table.Name
		table.Name = fmt.Sprintf(format, old)
		for _, f := range t.Functions {
			for name, value := range f.Environment {
				if value == old {
					f.Environment[name] = table.Name
				}
			}
		}
	}
}

// Stop ends the functions, the emulator, DynamoDB Local and the clearing house, in this order, and
// removes what was built. A DynamoDB Local that was there before stays, without
// our tables. Stopping twice does nothing.
func (s *Stack) Stop() error {
	var errs []error
	if s.emulator != nil {
		errs = append(errs, s.emulator.Close())
		s.emulator = nil
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
		if _, err := s.database.Client().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(t.Name)}); err != nil {
			errs = append(errs, fmt.Errorf("delete the table %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// URL is the base URL of the HTTP API, without a slash at its end.
func (s *Stack) URL() string { return s.emulator.URL() }

// Emulator returns the Lambda emulator.
func (s *Stack) Emulator() *emulator.Emulator { return s.emulator }

// Database returns the DynamoDB Local.
func (s *Stack) Database() *ddblocal.Server { return s.database }

// Clearing returns the clearing house that the transfers function calls.
func (s *Stack) Clearing() *clearing.Service { return s.clearing }

// Table returns the name of a table by its logical ID in template.yaml. It
// panics if there is none.
func (s *Stack) Table(logicalID string) string {
	for _, t := range s.template.Tables {
		if t.LogicalID == logicalID {
			return t.Name
		}
	}
	panic("stack: template.yaml has no table " + logicalID)
}

// modulePath is the first line of our go.mod.
const modulePath = "module github.com/lambdaidem/toolkit\n"

// moduleRoot finds this project's folder at or above the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the project's folder: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of github.com/lambdaidem/toolkit: "+
				"run this from one, since it builds the functions that are in it", start)
		}
	}
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
