package pipe_test

import (
	"os"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/internal/pipe"
)

func TestOutput_StopsWhenNobodyReads(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close() //nolint:errcheck // nobody reads it
	stopped := 0
	out := pipe.Output{W: writer, Stop: func() { stopped++ }}
	if _, err := out.Write([]byte("a")); err != nil || stopped != 0 {
		t.Errorf("a write that is read: %v, stopped %d times", err, stopped)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("b")); err == nil || stopped != 1 {
		t.Errorf("a write that nobody reads: %v, stopped %d times", err, stopped)
	}
}
