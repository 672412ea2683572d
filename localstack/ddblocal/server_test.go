package ddblocal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
)

// roleVariable is the environment variable that makes the test binary act as another process,
// such as the parent of a server.
const roleVariable = "DDBLOCAL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		_ = os.Unsetenv(EndpointVariable) // these tests stop their servers, so they must not use a shared one
		goleak.VerifyTestMain(m)
	case "parent":
		playParent()
	case "docker":
		playDocker()
	}
}

// playParent starts a server, prints its endpoint, and runs until it is killed.
func playParent() {
	s, err := Start(context.Background(), own)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.Endpoint(), runOf(s).Dir)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func runOf(s *Server) jarserver.Run {
	r, _ := s.jar.Supervisor()
	return r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func own(o *Options) { o.Own = true }

func start(t *testing.T, optFns ...func(*Options)) *Server {
	t.Helper()
	s, err := Start(t.Context(), append([]func(*Options){own}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sharedServer returns the server of ForTest, for tests that neither stop it nor count its
// tables.
func sharedServer(t *testing.T) *Server {
	t.Helper()
	s := ForTest(t)
	t.Cleanup(s.CloseIdleConnections)
	return s
}

// eventually polls until holds returns true, and fails the test after 15 seconds. Use it for
// conditions on other processes.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("not within 15 s: %s", what)
		case <-ticker.C:
		}
	}
}

func refuses(endpoint string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

func createTable(t *testing.T, s *Server, name string) {
	t.Helper()
	_, err := s.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func tables(t *testing.T, s *Server) []string {
	t.Helper()
	out, err := s.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return out.TableNames
}

func TestStart_AnswersUntilStopped(t *testing.T) {
	s := start(t)
	if !s.Owned() {
		t.Error("a server started here is not Owned")
	}
	createTable(t, s, "payments")
	if err := s.Start(t.Context()); err != nil {
		t.Errorf("Start on a running server: %v", err)
	}
	endpoint, dir := s.Endpoint(), runOf(s).Dir
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if !refuses(endpoint) {
			t.Error("Stop returned while the port still accepts")
		}
		if exists(dir) {
			t.Errorf("Stop left %s behind", dir)
		}
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Endpoint() != endpoint {
		t.Errorf("started again on %s, was on %s", s.Endpoint(), endpoint)
	}
	if got := tables(t, s); len(got) != 0 {
		t.Errorf("tables in memory outlived Stop: %v", got)
	}
}

func TestStart_DataDirKeepsTablesOverAStop(t *testing.T) {
	s := start(t, func(o *Options) { o.DataDir = filepath.Join(t.TempDir(), "new", "data") })
	createTable(t, s, "payments")
	_, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("payments"),
		Item:      map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "p-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := s.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("payments"),
		Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "p-1"}},
	})
	if err != nil || out.Item == nil {
		t.Errorf("the item written before Stop: %v, error %v", out, err)
	}
}

func TestStart_DiesWithAParentKilledBySIGKILL(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleVariable+"=parent")
	parent.Stderr = os.Stderr
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	endpoint, dir, found := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !found || !exists(dir) || refuses(endpoint) {
		t.Fatalf("the parent said %q, error %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent ended well, so it was not killed")
	}
	eventually(t, "the port refuses", func() bool { return refuses(endpoint) })
	eventually(t, "the run's folder is removed", func() bool { return !exists(dir) })
	_ = stdin.Close()
}

func TestStart_AnotherServersAnswerIsNotTakenForItsOwn(t *testing.T) {
	other := sharedServer(t)
	port := other.jar.Port()
	_, err := Start(t.Context(), own, func(o *Options) { o.Port = port })
	if !errors.Is(err, jarserver.ErrPortTaken) || !strings.Contains(err.Error(), "Failed to bind") || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("error %v, want one that names port %d and has the server's output", err, port)
	}
}

func TestStart_LostRaceForAPortIsRunAgain(t *testing.T) {
	other := sharedServer(t)
	picks := 0
	s := newServer()
	var err error
	s.jar, err = jarserver.Start(t.Context(), s.program(Options{}), jarserver.Options{FreePort: func() (int, error) {
		if picks++; picks == 1 {
			return other.jar.Port(), nil
		}
		return jarserver.FreePort()
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.endpoint = s.jar.Endpoint()
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if picks != 2 || s.Endpoint() == other.Endpoint() {
		t.Errorf("%d ports tried, started on %s beside %s", picks, s.Endpoint(), other.Endpoint())
	}
	createTable(t, s, "mine")
	if slices.Contains(tables(t, other), "mine") {
		t.Error("the other server has this one's table")
	}
}

func TestStart_EndedContextLeavesNothingBehind(t *testing.T) {
	s := start(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	leavings := filepath.Join(os.TempDir(), "*") //nolint:usetesting // where the server would leave something
	if left, err := filepath.Glob(leavings); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

func TestStop_SaysThatTheServerHadDiedBefore(t *testing.T) {
	s, err := Start(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	// The children of the supervisor are the server and its watcher.
	_, supervisor := s.jar.Supervisor()
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(supervisor.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(pid)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the port refuses", func() bool { return refuses(s.Endpoint()) })
	eventually(t, "Stop can know", func() bool { return s.jar.Died() != nil })
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "had died before") || !strings.Contains(err.Error(), "Version:") {
		t.Errorf("error %v, want one that says so, with the server's output", err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stopped again: %v", err)
	}
}

func TestStart_EndpointVariable(t *testing.T) {
	owner := sharedServer(t)
	createTable(t, owner, "owners")
	t.Setenv(EndpointVariable, owner.Endpoint()+"/")
	t.Setenv("AWS_REGION", "eu-central-1")
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Owned() || s.Endpoint() != owner.Endpoint() || s.Config().Region != "eu-central-1" {
		t.Errorf("Owned %v, endpoint %s, Region %s", s.Owned(), s.Endpoint(), s.Config().Region)
	}
	if got := tables(t, s); !slices.Contains(got, "owners") {
		t.Errorf("tables %v, want the owner's", got)
	}
	if err := s.Stop(); err != nil || refuses(owner.Endpoint()) {
		t.Errorf("Stop on a server of others: error %v, stopped %v", err, refuses(owner.Endpoint()))
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("Start on a server of others succeeded")
	}
}

func TestStart_EndpointThatDoesNotAnswerIsAnError(t *testing.T) {
	port, err := jarserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://127.0.0.1:" + strconv.Itoa(port)
	t.Setenv(EndpointVariable, endpoint)
	if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), EndpointVariable+" is "+endpoint) {
		t.Errorf("error %v, want one that names the variable and the endpoint", err)
	}
}

func TestStart_OptionsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for field, set := range map[string]func(*Options){
		"Port":    func(o *Options) { o.Port = 70000 },
		"DataDir": func(o *Options) { o.DataDir = file },
	} {
		if _, err := Start(t.Context(), own, set); err == nil || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("%s: error %v, want one that names the field", field, err)
		}
	}
}

func TestConfig_ConnectionsAreKeptUnderLoad(t *testing.T) {
	t.Setenv(EndpointVariable, sharedServer(t).Endpoint())
	s, err := Start(t.Context()) // its HTTP client is not that of sharedServer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.CloseIdleConnections)
	var dials atomic.Int64
	transport := s.http.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, address)
	}
	client := s.Client()
	const workers, requests = 64, 10
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range requests {
				if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// A request that finds no idle connection dials, but may be served by a connection that
	// becomes idle before the new one is ready. So the number of dials can exceed the number of
	// workers.
	if n := dials.Load(); n > 2*workers {
		t.Errorf("%d requests, %d at once, dialled %d times", workers*requests, workers, n)
	}
}

func TestForTest_SharesOneServer(t *testing.T) {
	if a, b := ForTest(t), ForTest(t); a != b {
		t.Errorf("two servers: %s and %s", a.Endpoint(), b.Endpoint())
	}
}
