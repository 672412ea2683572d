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
	// Version is the release of DynamoDB Local that Start runs, with Java or with Docker.
	Version = "3.1.0"

	// EndpointVariable is the environment variable with the endpoint of a running server, which Start uses instead of
	// starting one. The AWS SDKs and the AWS CLI read it too.
	EndpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

	// DummyCredential is the access key ID and the secret access key of [Server.Config]. DynamoDB Local requires an
	// access key ID of letters and digits, and doesn't check it.
	DummyCredential = "local"

	defaultRegion = "us-east-1"
)

// Server is a running or stopped DynamoDB Local. Its methods are safe for concurrent use.
type Server struct {
	endpoint string
	region   string
	http     *http.Client

	jar *jarserver.Server // nil if the server was found at EndpointVariable
}

// Start finds or starts a DynamoDB Local, as the package documentation describes, and returns when the server answers.
// The context limits the start, not the lifetime of the server.
//
// Start fails if the server at AWS_ENDPOINT_URL_DYNAMODB doesn't answer, if neither Java nor Docker can run DynamoDB
// Local, if the server ends early (the error then includes its output), if Options.Port is in use, or if the server
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
		s.CloseIdleConnections() // another server on the port may have answered
		return nil, fmt.Errorf("ddblocal: %w", err)
	}
	s.endpoint = s.jar.Endpoint()
	return s, nil
}

// attach returns the server that is already running at the endpoint.
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
	// By default, net/http keeps 2 idle connections per host, and the SDK's client 10. Under load, most requests would
	// open a new connection, which takes time and soon uses up the ephemeral ports.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 256
	s.http = &http.Client{Transport: transport}
	return s
}

// Endpoint returns the server's base URL without a final slash, such as "http://127.0.0.1:49152". Stop and Start don't
// change it.
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports whether Start has started the server. It is false for the server at AWS_ENDPOINT_URL_DYNAMODB, which
// other programs may use.
func (s *Server) Owned() bool { return s.jar != nil }

// Config returns a configuration for clients of the AWS SDK. It has the endpoint, the Region in AWS_REGION (default:
// us-east-1) and made-up credentials. All configurations of one server share an HTTP client, which keeps up to 256 idle
// connections.
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

// CloseIdleConnections closes the connections of [Server.Config] that no request uses. Each connection has two
// goroutines, which a check for leaked goroutines would report.
func (s *Server) CloseIdleConnections() { s.http.CloseIdleConnections() }

// Start restarts a stopped server on the same port, and returns when the server answers. With Options.DataDir, the server
// has its tables again; otherwise it is empty. If the server is running, Start does nothing. It fails for the same
// reasons as the function [Start], and always if the server is not [Server.Owned].
func (s *Server) Start(ctx context.Context) error {
	if s.jar == nil {
		return fmt.Errorf("ddblocal: the server at %s came from %s and can't be started from here: set Options.Own to get one that can",
			s.endpoint, EndpointVariable)
	}
	if err := s.jar.Start(ctx); err != nil {
		s.CloseIdleConnections() // another server on the port may have answered
		return fmt.Errorf("ddblocal: %w", err)
	}
	return nil
}

// Stop ends the server with SIGKILL, as in a crash, and returns when the process has ended and the port is free. Stop does
// nothing if the server is stopped already or is not [Server.Owned]. An error means that the server had ended before the
// call (the error then includes its output), or that it didn't end within 10 seconds.
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
