// Package jarserver runs a server that is published as a jar and as a container image: by Java, with Maven for the
// first download, or else by Docker. The server dies with the process that started it.
package jarserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// readyWithin is generous: a JVM on a busy machine with few cores takes seconds.
	readyWithin = 60 * time.Second

	// portAttempts bounds how often a lost race for a free port is run again.
	portAttempts = 5
)

var errNotReady = fmt.Errorf("it did not answer within %s", readyWithin)

// Program describes a server that can be run. All fields are required.
type Program struct {
	Name     string // for people, such as "DynamoDB Local"
	Version  string
	Slug     string // begins the names of the cache folder, of temporary folders and of containers
	Size     string // of the download, for people
	Variable string // the environment variable with the endpoint of a server that runs already
	Image    string // the container image, with its tag
	POM      []byte // what Maven reads to fetch the jars of Version

	// Java returns the arguments of java for a run; the jars are in the folder lib.
	Java func(lib string, r Run) []string
	// Docker returns the arguments of docker run, after its name: what to publish, the image, and the command.
	Docker func(r Run) []string
	// Ready reports whether this run answers on its port, and not another server. An error means that it never will.
	Ready func(ctx context.Context, r Run) (bool, error)
}

// Options say how [Start] starts a server.
type Options struct {
	Progress io.Writer           // gets a line or two while something is downloaded; nil is os.Stderr
	Port     int                 // the TCP port to listen on, 1 to 65535; 0 is a free one
	Own      bool                // the caller ignores Program.Variable: error messages say so
	FreePort func() (int, error) // proposes a port if Port is 0; nil is [FreePort]
}

// Server is a program that runs, or that was stopped and can be started again. Its methods may be called by several
// goroutines at once.
type Server struct {
	launcher *launcher
	port     int

	mu      sync.Mutex
	run     Run      // the last one
	process *process // nil: stopped
}

// Start starts a program and returns when it is ready. The context bounds the start alone, not the server's life.
//
// It fails when neither Java nor Docker can run the program, when the server dies early (the error ends with what the
// server printed), when Options.Port is taken ([ErrPortTaken]), or when the server isn't ready within a minute.
func Start(ctx context.Context, p Program, o Options) (*Server, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.FreePort == nil {
		o.FreePort = FreePort
	}
	l, err := findLauncher(ctx, p, o)
	if err != nil {
		return nil, err
	}
	s := &Server{launcher: l, port: o.Port}
	if o.Port != 0 {
		return started(s, s.Start(ctx))
	}
	// The port is free when it is picked and may be taken when the server binds to it, a JVM's start later.
	for attempt := 1; ; attempt++ {
		if s.port, err = o.FreePort(); err != nil {
			return nil, err
		}
		err = s.Start(ctx)
		if attempt < portAttempts && errors.Is(err, ErrPortTaken) {
			continue
		}
		return started(s, err)
	}
}

func started(s *Server, err error) (*Server, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// FreePort returns a TCP port of 127.0.0.1 that is free now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// Port returns the TCP port. It stays the same over Stop and Start.
func (s *Server) Port() int { return s.port }

// Endpoint returns the base URL, such as "http://127.0.0.1:49152", without a slash at its end.
func (s *Server) Endpoint() string { return Endpoint(s.port) }

// Endpoint returns the base URL of a server on a port of 127.0.0.1.
func Endpoint(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// Start starts a server again that Stop stopped, on the same port, and returns when it is ready. On a server that runs
// it does nothing.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	program := s.launcher.program
	r, err := newRun(program, s.port)
	if err != nil {
		return err
	}
	p, err := supervise(s.launcher, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	if err := waitReady(ctx, program, p, r); err != nil {
		return errors.Join(fmt.Errorf("starting %s %s by %s on port %d: %w", program.Name, program.Version, s.launcher.name, r.Port, err), p.stop())
	}
	s.run, s.process = r, p
	return nil
}

// waitReady returns when the run is ready.
func waitReady(ctx context.Context, program Program, p *process, r Run) error {
	for {
		if ready, err := program.Ready(ctx, r); ready || err != nil {
			return err //nolint:wrapcheck // Start says what failed
		}
		if err := p.died(50 * time.Millisecond); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Stop ends the server as a crash would (SIGKILL) and returns when its process is gone and its port is free. Stopping
// twice does nothing. An error says that the server had died before, with what it printed, or that it couldn't be
// stopped within 10 seconds.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	p, name := s.process, s.launcher.program.Name
	s.process = nil
	died := p.died(time.Millisecond)
	if err := p.stop(); err != nil {
		return fmt.Errorf("stopping %s on %s: %w", name, s.Endpoint(), err)
	}
	if died != nil {
		return fmt.Errorf("%s on %s had died before it was stopped: %w", name, s.Endpoint(), died)
	}
	return nil
}

// Supervisor returns the last run, and the process that watches over it: nil if the server is stopped.
func (s *Server) Supervisor() (Run, *os.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return s.run, nil
	}
	return s.run, s.process.cmd.Process
}

// Died returns nil if the server runs or was stopped, else an error with what it printed.
func (s *Server) Died() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.process.died(time.Millisecond)
}
