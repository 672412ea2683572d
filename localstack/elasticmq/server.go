// Package elasticmq starts ElasticMQ, an implementation of Amazon SQS, for local runs and for tests.
//
//	server, err := elasticmq.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client := server.Client()
//
// All tests of a process share one server. Each test must give its queues unique names:
//
//	client := elasticmq.ForTest(t).Client()
//
// [Start] uses the first of these that is available:
//
//  1. The endpoint in AWS_ENDPOINT_URL_SQS, which may be any SQS. The AWS SDKs and the AWS CLI read this variable too.
//  2. Java 17 or later, with Maven for the first run. Maven copies org.elasticmq:elasticmq-server_2.13 into the user's
//     cache folder ([os.UserCacheDir], then lambdaidem/elasticmq-VERSION). Delete that folder to download it again.
//  3. Docker, with the image softwaremill/elasticmq.
//
// The server listens on 127.0.0.1 and checks no signature. It ends with the process that started it. Queues are in memory
// and are lost when the server stops.
//
// QUEUE.md lists where ElasticMQ differs from SQS.
package elasticmq

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
)

const (
	// Version is the release of ElasticMQ that Start runs, with Java or with Docker.
	Version = "1.6.12"

	// EndpointVariable is the environment variable with the endpoint of a running SQS, which Start uses instead of
	// starting one. The AWS SDKs and the AWS CLI read it too.
	EndpointVariable = "AWS_ENDPOINT_URL_SQS"

	// DefaultAccountID is the account in ARNs and queue URLs unless Options.AccountID is set.
	DefaultAccountID = "000000000000"

	defaultRegion = "us-east-1"
	dummy         = "local" // the access key ID and the secret access key
	image         = "softwaremill/elasticmq:" + Version
	containerPort = 9324
)

// Options configure [Start]. The zero value of each field is its default. All fields except Own apply only to a server
// that Start starts itself.
type Options struct {
	Progress  io.Writer // receives a few lines while something is downloaded. Default: os.Stderr
	Port      int       // the TCP port to listen on, 1 to 65535. Default: 0, a free port
	Region    string    // the Region in ARNs. Default: us-east-1
	AccountID string    // the account in ARNs and queue URLs. Default: [DefaultAccountID]
	Own       bool      // start a server even if AWS_ENDPOINT_URL_SQS is set. Default: false
}

// Server is a running ElasticMQ, or the SQS at AWS_ENDPOINT_URL_SQS. Its methods are safe for concurrent use.
type Server struct {
	endpoint string
	region   string
	http     *http.Client
	jar      *jarserver.Server // nil if the server was found at EndpointVariable
}

// Start finds or starts a server, as the package documentation describes, and returns when the server answers. The
// context limits the start, not the lifetime of the server.
//
// Start fails if the SQS at AWS_ENDPOINT_URL_SQS doesn't answer, if neither Java nor Docker can run ElasticMQ, if the
// server ends early, if Options.Port is in use, or if the server doesn't answer within a minute.
func Start(ctx context.Context, optFns ...func(*Options)) (*Server, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Port < 0 || o.Port > 65535 {
		return nil, fmt.Errorf("elasticmq: Options.Port is %d: give a port from 1 to 65535, or 0 for a free one", o.Port)
	}
	o.Region, o.AccountID = cmp.Or(o.Region, defaultRegion), cmp.Or(o.AccountID, DefaultAccountID)
	s := &Server{region: o.Region, http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" && !o.Own {
		s.endpoint = strings.TrimSuffix(endpoint, "/")
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := s.listQueues(ctx, s.endpoint); err != nil {
			s.CloseIdleConnections()
			return nil, fmt.Errorf("elasticmq: %s is %s, but no SQS answers there: start one on it, or unset the variable: %w", EndpointVariable, endpoint, err)
		}
		return s, nil
	}
	var err error
	s.jar, err = jarserver.Start(ctx, s.program(o), jarserver.Options{Progress: o.Progress, Port: o.Port, Own: o.Own})
	if err != nil {
		s.CloseIdleConnections()
		return nil, fmt.Errorf("elasticmq: %w", err)
	}
	s.endpoint = s.jar.Endpoint()
	return s, nil
}

//go:embed pom.xml
var pom []byte

func (s *Server) program(o Options) jarserver.Program {
	return jarserver.Program{
		Name: "ElasticMQ", Version: Version, Slug: "elasticmq", Size: "about 40 MB",
		Variable: EndpointVariable, Image: image, POM: pom,
		Java: func(lib string, r jarserver.Run) []string {
			// The JVM starts faster with one JIT compiler and the serial garbage collector.
			args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.io.tmpdir=" + r.Dir}
			args = append(args, settings(o, "127.0.0.1", r.Port, r.Port)...)
			return append(args, "-cp", filepath.Join(lib, "*"), "org.elasticmq.server.Main")
		},
		Docker: func(r jarserver.Run) []string {
			return []string{
				"--publish", fmt.Sprintf("127.0.0.1:%d:%d", r.Port, containerPort),
				"--env", "JAVA_OPTS=" + strings.Join(settings(o, "0.0.0.0", containerPort, r.Port), " "), image,
			}
		},
		Ready: func(ctx context.Context, r jarserver.Run) (bool, error) {
			// Another server may have taken the port and answer there, so check the output of this run first.
			output, err := os.ReadFile(filepath.Join(r.Dir, "output"))
			switch {
			case err != nil:
				return false, nil //nolint:nilerr // the server has printed nothing yet
			case strings.Contains(string(output), "Address already in use"):
				return false, fmt.Errorf("%w: %s", jarserver.ErrPortTaken, output)
			case !strings.Contains(string(output), "=== ElasticMQ server ("+Version+") started"):
				return false, nil
			}
			return true, s.listQueues(ctx, jarserver.Endpoint(r.Port))
		},
	}
}

// settings returns ElasticMQ's configuration as system properties, which override its configuration file. The server
// listens on the port bind and returns URLs with the port published.
func settings(o Options, host string, bind, published int) []string {
	return []string{
		"-Drest-sqs.bind-hostname=" + host,
		fmt.Sprintf("-Drest-sqs.bind-port=%d", bind),
		"-Drest-sqs.sqs-limits=strict",
		"-Drest-stats.enabled=false",
		"-Dnode-address.host=127.0.0.1",
		fmt.Sprintf("-Dnode-address.port=%d", published),
		"-Daws.region=" + o.Region,
		"-Daws.accountId=" + o.AccountID,
	}
}

func (s *Server) listQueues(ctx context.Context, endpoint string) error {
	_, err := s.Client().ListQueues(ctx, &sqs.ListQueuesInput{MaxResults: aws.Int32(1)}, func(o *sqs.Options) {
		o.BaseEndpoint, o.RetryMaxAttempts = &endpoint, 1
	})
	return err
}

// Endpoint returns the server's base URL without a final slash, such as "http://127.0.0.1:49152".
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports whether Start has started the server. It is false for the SQS at AWS_ENDPOINT_URL_SQS, which other
// programs may use.
func (s *Server) Owned() bool { return s.jar != nil }

// Client returns a client for the server, with made-up credentials. All clients of one server share an HTTP client.
// Functions in optFns can change its options.
func (s *Server) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: s.region, BaseEndpoint: aws.String(s.endpoint), HTTPClient: s.http,
		Credentials: credentials.NewStaticCredentialsProvider(dummy, dummy, ""),
	}, optFns...)
}

// CloseIdleConnections closes the connections of [Server.Client] that no request uses.
func (s *Server) CloseIdleConnections() { s.http.CloseIdleConnections() }

// Stop ends the server and returns when its process has ended and its port is free. Stop does nothing if the server is
// stopped already or is not [Server.Owned]. An error means that the server had ended before the call, or that it didn't
// end within 10 seconds.
func (s *Server) Stop() error {
	s.CloseIdleConnections()
	if s.jar == nil {
		return nil
	}
	if err := s.jar.Stop(); err != nil {
		return fmt.Errorf("elasticmq: %w", err)
	}
	return nil
}

// ForTest returns the server that all tests of a process share. Give each test its own queues. If no server can be found
// or started, ForTest fails the test and says why. The server ends with the process.
func ForTest(t testing.TB) *Server {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.CloseIdleConnections)
	return server
}

var shared = sync.OnceValues(func() (*Server, error) {
	// Long enough for a download over a slow connection, and less than the ten minutes of go test.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return Start(ctx)
})
