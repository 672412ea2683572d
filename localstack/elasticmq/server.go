// Package elasticmq starts ElasticMQ, an implementation of Amazon SQS, for local runs and for tests.
//
//	server, err := elasticmq.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client := server.Client()
//
// A test asks for the server that its process shares, and gives its queues names of their own:
//
//	client := elasticmq.ForTest(t).Client()
//
// [Start] takes the first of these that is available:
//
//  1. The endpoint in AWS_ENDPOINT_URL_SQS, the variable that the AWS SDKs and the AWS CLI read too. Any SQS will do.
//  2. Java 17 or later, with Maven for the first run: it copies org.elasticmq:elasticmq-server_2.13 into the user's
//     cache folder ([os.UserCacheDir], then lambdaidem/elasticmq-VERSION). Delete that folder to fetch it again.
//  3. Docker, with the image softwaremill/elasticmq.
//
// The server listens on 127.0.0.1 and checks no signature. It dies with the process that started it. Queues are in
// memory and gone when it stops.
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
	// Version is the release of ElasticMQ that Start runs, by Java and by Docker alike.
	Version = "1.6.12"

	// EndpointVariable is the environment variable that names an endpoint to use instead of starting one. The AWS SDKs
	// and the AWS CLI read it too.
	EndpointVariable = "AWS_ENDPOINT_URL_SQS"

	// DefaultAccountID is the account in ARNs and queue URLs unless Options.AccountID is set.
	DefaultAccountID = "000000000000"

	defaultRegion = "us-east-1"
	dummy         = "local" // access key id and secret
	image         = "softwaremill/elasticmq:" + Version
	containerPort = 9324
)

// Options say how [Start] starts a server. The zero value of each field is its default. All but Own apply only to a
// server that Start starts itself.
type Options struct {
	Progress  io.Writer // gets a line or two when something has to be downloaded first. Default: os.Stderr
	Port      int       // the TCP port to listen on, 1 to 65535. Default: a free one
	Region    string    // in ARNs. Default: us-east-1
	AccountID string    // in ARNs and queue URLs. Default: [DefaultAccountID]
	Own       bool      // start a server even if AWS_ENDPOINT_URL_SQS is set. Default: false
}

// Server is an ElasticMQ, or another SQS at AWS_ENDPOINT_URL_SQS. Its methods may be called by several goroutines at
// once.
type Server struct {
	endpoint string
	region   string
	http     *http.Client
	jar      *jarserver.Server // nil: not ours
}

// Start finds or starts a server, as the package documentation says, and returns when it answers. The context bounds
// the start alone, not the server's life.
//
// It fails when AWS_ENDPOINT_URL_SQS is set and doesn't answer, when neither Java nor Docker can run ElasticMQ, when the
// server dies early, when Options.Port is taken, or when the server doesn't answer within a minute.
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
			// A server for one machine starts faster with one compiler and the simplest collector.
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
			// Another server may have taken the port, so the run's own output counts, and not an answer alone.
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

// settings returns ElasticMQ's configuration as system properties, which win over its configuration file.
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

// Endpoint returns the server's base URL, such as "http://127.0.0.1:49152", without a slash at its end.
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports whether the server was started here. It is false for one found by AWS_ENDPOINT_URL_SQS, which others may
// be using.
func (s *Server) Owned() bool { return s.jar != nil }

// Client returns a client for the server, with made-up credentials. All clients of one server share an HTTP client.
// Functions in optFns can change its options.
func (s *Server) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: s.region, BaseEndpoint: aws.String(s.endpoint), HTTPClient: s.http,
		Credentials: credentials.NewStaticCredentialsProvider(dummy, dummy, ""),
	}, optFns...)
}

// CloseIdleConnections closes the connections of [Server.Client] that no request uses now.
func (s *Server) CloseIdleConnections() { s.http.CloseIdleConnections() }

// Stop ends the server and returns when its process is gone and its port is free. Stopping twice does nothing, and so
// does stopping a server that is not [Server.Owned]. An error says that the server had died before, or that it couldn't
// be stopped within 10 seconds.
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

// ForTest returns the server that all tests of a process share: give each test queues of its own. If no server can be
// had, the test fails and says why. The server ends with the process.
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
	// Long enough for a first download on a slow line; go test itself gives up after ten minutes.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return Start(ctx)
})
