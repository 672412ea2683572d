package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build builds a program of this folder, as the Makefile's build_function does, and calls read
// with its file.
func build(ctx context.Context, folder, program, arch, linkerFlags string, read func(*elf.File) error) error {
	path := filepath.Join(folder, program)
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags,
		"-o", path, "github.com/lambdaidem/toolkit/bench/size/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	file, err := elf.Open(path)
	if err == nil {
		err = errors.Join(read(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("read the program %s: %w", program, err)
	}
	return nil
}
