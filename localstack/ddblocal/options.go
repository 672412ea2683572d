package ddblocal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Options configure [Start]. The zero value of each field is its default. All fields except Progress and Own apply only to
// a server that Start starts itself, not to the one at AWS_ENDPOINT_URL_DYNAMODB.
type Options struct {
	// Progress receives a few lines while something is downloaded, and nothing otherwise. Default: os.Stderr.
	Progress io.Writer

	// Port is the TCP port to listen on, 1 to 65535. Default: 0, a free port.
	Port int

	// DataDir is the folder for the tables, which then still exist after [Server.Stop] and [Server.Start]. It is
	// created if it does not exist. Only one server at a time may use it. Default: "", tables are in memory and are
	// lost after Stop.
	DataDir string

	// Own starts a new server even if AWS_ENDPOINT_URL_DYNAMODB is set. Set it if you want to stop the server.
	// Default: false.
	Own bool

	// Benchmark lets the Java virtual machine optimize the server fully, as it does by default in a container. The
	// server is then faster after some thousands of requests, and uses more processor time until then. Default: false.
	Benchmark bool
}

func newOptions(optFns []func(*Options)) (Options, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Port < 0 || o.Port > 65535 {
		return o, fmt.Errorf("ddblocal: Options.Port is %d: give a port from 1 to 65535, or 0 for a free one", o.Port)
	}
	if o.DataDir != "" {
		dir, err := filepath.Abs(o.DataDir)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err != nil {
			return o, fmt.Errorf("ddblocal: Options.DataDir %q can't be used: %w", o.DataDir, err)
		}
		o.DataDir = dir
	}
	return o, nil
}
