// Command size prints how much the guard adds to the binary of a Lambda function. It builds two
// programs in the way in which the functions of template.yaml are built. The handler of bare places an
// order with two writes of the AWS SDK. The program guarded guards the same handler, with the default
// options.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lambdaidem/toolkit/bench/internal/command"
)

func main() { os.Exit(command.Run("size", run)) }

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	fmt.Println("| architecture | bare | guarded | the guard adds |\n|---|---|---|---|")
	for _, arch := range []string{"arm64", "amd64"} {
		s, err := measure(ctx, folder, arch)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d KB | %d KB | %d KB, %.1f %% |\n", arch, s.bare/1000, s.guarded/1000, s.added()/1000, s.percent())
	}
	added, err := addedByPackage(ctx, folder, "arm64")
	if err != nil {
		return err
	}
	fmt.Printf("\nCode and variables that the guard adds on arm64, in bytes:\n\n")
	for _, p := range added {
		fmt.Printf("%9d %s\n", p.bytes, p.name)
	}
	return nil
}
