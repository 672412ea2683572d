// Package jarserver runs a server that is published both as a jar and as a container image. It uses Java, with Maven for
// the first download, or otherwise Docker. The server ends with the process that started it.
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
	// readyWithin is the maximum time until the server is ready. It is long, because a JVM takes seconds to start on a
	// busy machine with few cores.
	readyWithin = 60 * time.Second

	// portAttempts is the maximum number of free ports to try. Another process may take a free port before the server
	// does.
	portAttempts = 5
)

var errNotReady = fmt.Errorf("it did not answer within %s", readyWithin)

// Program describes a server to run. All fields are required.
type Program struct {
	Name     string // for people, such as "DynamoDB Local"
	Version  string
	Slug     string // prefix of the names of the cache folder, temporary folders and containers
	Size     string // size of the download, for people
	Variable string // environment variable with the endpoint of a running server
	Image    string // the container image, with its tag
	POM      []byte // the pom.xml with which Maven downloads the jars

	// Java returns the arguments of java for a run. lib is the folder with the jars.
	Java func(lib string, r Run) []string
	// Docker returns the arguments of docker run that follow --name: the published port, the image and the command.
	Docker func(r Run) []string
	// Ready reports whether the server of this run, and no other server, answers on the port. An error means that the
	// server never will.
	Ready func(ctx context.Context, r Run) (bool, error)
}

// Options configure [Start].
type Options struct {
	Progress io.Writer           // receives a few lines while something is downloaded; nil means os.Stderr
	Port     int                 // the TCP port to listen on, 1 to 65535; 0 means a free port
	Own      bool                // the caller has ignored Program.Variable; error messages then say so
	FreePort func() (int, error) // returns a port if Port is 0; nil means [FreePort]
}

// Server is a running program, or a stopped program that can be started again. Its methods are safe for concurrent use.
type Server struct {
	launcher *launcher
	port     int

	mu      sync.Mutex
	run     Run      // the current or the last run
	process *process // nil if the server is stopped
}

// Start starts a program and returns when it is ready. The context limits the start, not the lifetime of the server.
//
// Start fails if neither Java nor Docker can run the program, if the server ends early (the error then includes its
// output), if Options.Port is in use ([ErrPortTaken]), or if the server isn't ready within a minute.
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
	// Another process may take the free port while the JVM starts.
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

// FreePort returns a TCP port of 127.0.0.1 that no process uses at the moment.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// Port returns the TCP port. Stop and Start don't change it.
func (s *Server) Port() int { return s.port }

// Endpoint returns the server's base URL without a final slash, such as "http://127.0.0.1:49152".
func (s *Server) Endpoint() string { return Endpoint(s.port) }

// Endpoint returns the base URL of a server on a port of 127.0.0.1.
func Endpoint(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// Start restarts a stopped server on the same port, and returns when it is ready. If the server is running, Start does
// nothing.
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

// waitReady waits until the run is ready, or returns an error if its process ends or ctx ends first.
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

// Stop ends the server with SIGKILL, as in a crash, and returns when the process has ended and the port is free. Stop does
// nothing if the server is stopped already. An error means that the server had ended before the call (the error then
// includes its output), or that it didn't end within 10 seconds.
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

// Supervisor returns the current or the last run, and the process that watches over it. The process is nil if the server
// is stopped.
func (s *Server) Supervisor() (Run, *os.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return s.run, nil
	}
	return s.run, s.process.cmd.Process
}

// Died returns an error with the server's output if the server has ended without a call of Stop, and nil otherwise.
func (s *Server) Died() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	return s.process.died(time.Millisecond)
}
