package ddblocal

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lambdaidem/toolkit/localstack/internal/jarserver"
)

const (
	image = "amazon/dynamodb-local:" + Version

	// The image's port, and a folder to which the image's user may write.
	containerPort = 8000
	containerData = "/home/dynamodblocal/data"
)

//go:embed pom.xml
var pom []byte

// program describes a DynamoDB Local that stores its tables in o.DataDir, or in memory if that is empty.
func (s *Server) program(o Options) jarserver.Program {
	return jarserver.Program{
		Name: "DynamoDB Local", Version: Version, Slug: "dynamodb-local", Size: "about 50 MB",
		Variable: EndpointVariable, Image: image, POM: pom,
		Java:   func(lib string, r jarserver.Run) []string { return javaArgs(lib, o, r) },
		Docker: func(r jarserver.Run) []string { return dockerArgs(o.DataDir, r) },
		Ready: func(ctx context.Context, r jarserver.Run) (bool, error) {
			endpoint := jarserver.Endpoint(r.Port)
			if !s.answersFor(ctx, endpoint, origin(r)) {
				return false, nil
			}
			// The first real request loads the native SQLite library. If the library can't be loaded, it fails.
			return true, s.listTables(ctx, endpoint)
		},
	}
}

// origin returns the only CORS origin that the server of a run allows. Start recognizes its own server by this origin.
func origin(r jarserver.Run) string { return "http://" + r.Name + ".invalid" }

func javaArgs(lib string, o Options, r jarserver.Run) []string {
	var args []string
	if !o.Benchmark {
		// With one JIT compiler and the serial garbage collector, our tests use a quarter less
		// processor time.
		args = append(args, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	}
	args = append(args,
		"-Djava.library.path="+lib,
		// The server unpacks a native library there at each start, and leaves it behind when it is killed. The
		// folder of the run is removed.
		"-Djava.io.tmpdir="+r.Dir,
		"-cp", filepath.Join(lib, "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner")
	return append(args, serverArgs(o.DataDir, r.Port, origin(r))...)
}

func dockerArgs(dataDir string, r jarserver.Run) []string {
	args := []string{"--publish", fmt.Sprintf("127.0.0.1:%d:%d", r.Port, containerPort)}
	inside := ""
	if dataDir != "" {
		inside = containerData
		// Run as this user, so that this user owns the files and can remove them.
		args = append(args, "--mount", "type=bind,source="+dataDir+",target="+containerData,
			"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()))
	}
	// The image's entry point is java.
	args = append(args, image, "-jar", "DynamoDBLocal.jar")
	return append(args, serverArgs(inside, containerPort, origin(r))...)
}

// serverArgs returns the command-line options of DynamoDB Local (Amazon DynamoDB Developer Guide, "DynamoDB local usage notes").
func serverArgs(dataDir string, port int, origin string) []string {
	storage := []string{"-inMemory"}
	if dataDir != "" {
		storage = []string{"-dbPath", dataDir}
	}
	return append(storage, "-sharedDb", "-disableTelemetry", "-cors", origin, "-port", strconv.Itoa(port))
}
