package ddblocal

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
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
)

// Server is a DynamoDB Local. Its methods may be called by several goroutines at once.
type Server struct {
	endpoint string
	region   string
	http     *http.Client

	jar *jarserver.Server // nil: not ours
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
	s := newServer()
	s.jar, err = jarserver.Start(ctx, s.program(o), jarserver.Options{Progress: o.Progress, Port: o.Port, Own: o.Own})
	if err != nil {
		s.CloseIdleConnections() // to another server on the port
		return nil, fmt.Errorf("ddblocal: %w", err)
	}
	s.endpoint = s.jar.Endpoint()
	return s, nil
}

// attach returns the server that listens on an endpoint already.
func attach(ctx context.Context, endpoint string) (*Server, error) {
	s := newServer()
	s.endpoint = strings.TrimSuffix(endpoint, "/")
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.listTables(ctx, s.endpoint); err != nil {
		s.CloseIdleConnections()
		return nil, fmt.Errorf("ddblocal: %s is %s, but no DynamoDB Local answers there: start one on it, or unset the variable: %w",
			EndpointVariable, endpoint, err)
	}
	return s, nil
}

func newServer() *Server {
	s := &Server{region: os.Getenv("AWS_REGION")}
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

// Endpoint returns the server's base URL, such as "http://127.0.0.1:49152", without a slash at its end. It stays the
// same over Stop and Start.
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports whether the server was started here. It is false for one found by AWS_ENDPOINT_URL_DYNAMODB, which
// others may be using.
func (s *Server) Owned() bool { return s.jar != nil }

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
	if s.jar == nil {
		return fmt.Errorf("ddblocal: the server at %s came from %s and can't be started from here: set Options.Own to get one that can",
			s.endpoint, EndpointVariable)
	}
	if err := s.jar.Start(ctx); err != nil {
		s.CloseIdleConnections() // to another server on the port
		return fmt.Errorf("ddblocal: %w", err)
	}
	return nil
}

// Stop ends the server as a crash would (SIGKILL) and returns when its process is gone and its port is free. Stopping
// twice does nothing, and so does stopping a server that is not [Server.Owned]. An error says that the server had died
// before, with what it printed, or that it couldn't be stopped within 10 seconds.
func (s *Server) Stop() error {
	s.CloseIdleConnections()
	if s.jar == nil {
		return nil
	}
	if err := s.jar.Stop(); err != nil {
		return fmt.Errorf("ddblocal: %w", err)
	}
	return nil
}
