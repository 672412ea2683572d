package ddblocal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Options say how [Start] starts a server. The zero value of each field is its default. All but Progress and Own apply
// only to a server that Start starts itself, not to one found by AWS_ENDPOINT_URL_DYNAMODB.
type Options struct {
	// Progress gets a line or two when something has to be downloaded first, and nothing otherwise.
	// Default: os.Stderr.
	Progress io.Writer

	// Port is the TCP port to listen on, 1 to 65535. Default: 0, a free one.
	Port int

	// DataDir is a folder to keep the tables in, so that they outlive [Server.Stop] and [Server.Start]; it is created
	// if it is not there. One server at a time may use it. Default: "", tables are in memory and gone after Stop.
	DataDir string

	// Own demands a server of one's own: AWS_ENDPOINT_URL_DYNAMODB is not looked at. It is for callers that
	// mean to stop the server. Default: false.
	Own bool
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
