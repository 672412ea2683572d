package ddblocal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// Version is the release of DynamoDB Local that Start runs, by Java and by Docker alike.
	Version = "3.1.0"

	// EndpointVariable is the environment variable that names an endpoint to use instead of starting one. The AWS SDKs
	// and the AWS CLI read it too.
	EndpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

	// DummyCredential is the access key id and the secret of [Server.Config]. DynamoDB Local wants an access key id of
	// letters and digits, and doesn't check it.
	DummyCredential = "local"

	defaultRegion = "us-east-1"

	// readyWithin is generous: a JVM on a busy machine with few cores takes seconds.
	readyWithin = 60 * time.Second

	// portAttempts bounds how often a lost race for a free port is run again.
	portAttempts = 5
)

// Server is a DynamoDB Local. Its methods may be called by several goroutines at once.
type Server struct {
	endpoint string
	region   string
	http     *http.Client

	options  Options
	launcher *launcher // nil: not ours

	mu      sync.Mutex
	process *process // nil: stopped, or not ours
}

// Start finds or starts a DynamoDB Local, as the package documentation says, and returns when it answers. The context
// bounds the start alone, not the server's life.
//
// It fails when AWS_ENDPOINT_URL_DYNAMODB is set and doesn't answer, when none of the three ways is there, when the
// server dies early (the error ends with what the server printed), when Options.Port is taken, or when the server
// doesn't answer within a minute.
func Start(ctx context.Context, optFns ...func(*Options)) (*Server, error) {
	o, err := newOptions(optFns)
	if err != nil {
		return nil, err
	}
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" && !o.Own {
		return attach(ctx, endpoint)
	}
	l, err := findLauncher(ctx, o)
	if err != nil {
		return nil, err
	}
	return startOn(ctx, o, l, freePort)
}

// attach returns the server that listens on an endpoint already.
func attach(ctx context.Context, endpoint string) (*Server, error) {
	s := newServer(Options{})
	s.endpoint = strings.TrimSuffix(endpoint, "/")
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.listTables(ctx); err != nil {
		s.CloseIdleConnections()
		return nil, fmt.Errorf("ddblocal: %s is %s, but no DynamoDB Local answers there: start one on it, or unset the variable: %w",
			EndpointVariable, endpoint, err)
	}
	return s, nil
}

// startOn starts a server by l, on a port that pick proposes unless the options name one.
func startOn(ctx context.Context, o Options, l *launcher, pick func() (int, error)) (*Server, error) {
	s := newServer(o)
	s.launcher = l
	if o.Port != 0 {
		s.setPort(o.Port)
		return started(s, s.Start(ctx))
	}
	// The port is free when it is picked and may be taken when the server binds to it, a JVM's start later.
	for attempt := 1; ; attempt++ {
		port, err := pick()
		if err != nil {
			return nil, err
		}
		s.setPort(port)
		err = s.Start(ctx)
		if attempt < portAttempts && errors.Is(err, errPortTaken) {
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

func newServer(o Options) *Server {
	s := &Server{options: o, region: os.Getenv("AWS_REGION")}
	if s.region == "" {
		s.region = defaultRegion
	}
	// net/http keeps two idle connections per host, the SDK's own client ten: under load every other one closes and
	// dials anew, which costs time and, soon, all ephemeral ports.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 256
	s.http = &http.Client{Transport: transport}
	return s
}

func (s *Server) setPort(port int) {
	s.options.Port = port
	s.endpoint = fmt.Sprintf("http://127.0.0.1:%d", port)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("ddblocal: no free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// Endpoint returns the server's base URL, such as "http://127.0.0.1:49152", without a slash at its end. It stays the
// same over Stop and Start.
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports whether the server was started here. It is false for one found by AWS_ENDPOINT_URL_DYNAMODB, which
// others may be using.
func (s *Server) Owned() bool { return s.launcher != nil }

// Config returns a configuration for clients of the AWS SDK: the endpoint, the Region in AWS_REGION or else us-east-1,
// and made-up credentials. All configurations of one server share an HTTP client, which keeps up to 256 idle connections.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       s.region,
		Credentials:  credentials.NewStaticCredentialsProvider(DummyCredential, DummyCredential, ""),
		BaseEndpoint: aws.String(s.endpoint),
		HTTPClient:   s.http,
	}
}

// Client returns a DynamoDB client with [Server.Config]. Functions in optFns can change its options.
func (s *Server) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(s.Config(), optFns...)
}

// CloseIdleConnections closes the connections of [Server.Config] that no request uses now. Each one has two goroutines,
// which a check for leaked goroutines would find.
func (s *Server) CloseIdleConnections() { s.http.CloseIdleConnections() }

// Start starts a server again that Stop stopped, on the same port, and returns when it answers. With Options.DataDir it
// finds its tables again, else it is empty. On a server that runs it does nothing. It fails like the function [Start],
// and always if the server is not [Server.Owned].
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launcher == nil {
		return fmt.Errorf("ddblocal: the server at %s came from %s and can't be started from here: set Options.Own to get one that can",
			s.endpoint, EndpointVariable)
	}
	if s.process != nil {
		return nil
	}
	r, err := newRun(s.options.Port)
	if err != nil {
		return err
	}
	p, err := supervise(s.launcher, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	if err := s.waitReady(ctx, p, r.origin); err != nil {
		s.CloseIdleConnections() // to another server on the port
		return errors.Join(fmt.Errorf("ddblocal: starting DynamoDB Local %s by %s on port %d: %w", Version, s.launcher.name, r.port, err), p.stop())
	}
	s.process = p
	return nil
}

// Stop ends the server as a crash would (SIGKILL) and returns when its process is gone and its port is free. Stopping
// twice does nothing, and so does stopping a server that is not [Server.Owned]. An error says that the server had died
// before, with what it printed, or that it couldn't be stopped within 10 seconds.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.http.CloseIdleConnections()
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	died := p.died(time.Millisecond)
	if err := p.stop(); err != nil {
		return fmt.Errorf("ddblocal: stopping DynamoDB Local on %s: %w", s.endpoint, err)
	}
	if died != nil {
		return fmt.Errorf("ddblocal: DynamoDB Local on %s had died before it was stopped: %w", s.endpoint, died)
	}
	return nil
}
