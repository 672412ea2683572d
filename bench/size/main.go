// Command size prints how much the guard adds to the binary of a Lambda function. It builds two
// programs in the way in which the functions of template.yaml are built. The handler of bare places an
// order with two writes of the AWS SDK. The program guarded guards the same handler, with the default
// options.
package main

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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

// sizes has the sizes of the two programs' sections, in bytes. The files are larger, because they
// have padding between segments. A segment on arm64 begins at a multiple of 64 KB, so the sizes of
// the files would hide any smaller difference.
type sizes struct{ bare, guarded uint64 }

func (s sizes) added() uint64    { return s.guarded - s.bare }
func (s sizes) percent() float64 { return 100 * float64(s.added()) / float64(s.bare) }

// measure builds both programs for an architecture into the folder, and returns their sizes.
func measure(ctx context.Context, folder, arch string) (s sizes, err error) {
	for program, size := range map[string]*uint64{"bare": &s.bare, "guarded": &s.guarded} {
		err := build(ctx, folder, program, arch, "-s -w", func(file *elf.File) error {
			for _, section := range file.Sections {
				if section.Type != elf.SHT_NOBITS {
					*size += section.FileSize
				}
			}
			return nil
		})
		if err != nil {
			return sizes{}, err
		}
	}
	return s, nil
}

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

type packageSize struct {
	name  string
	bytes int64
}

// addedByPackage returns the packages of which the guarded program contains more code and
// variables than the bare one, with the difference in bytes, the largest first. The linker's
// tables about code and variables, such as the line numbers for stack traces, take about as much
// again.
func addedByPackage(ctx context.Context, folder, arch string) ([]packageSize, error) {
	added := map[string]int64{}
	for program, sign := range map[string]int64{"bare": -1, "guarded": 1} {
		// -w keeps the symbols and omits the debug information.
		err := build(ctx, folder, program, arch, "-w", func(file *elf.File) error {
			symbols, err := file.Symbols()
			for _, s := range symbols {
				if int(s.Section) < len(file.Sections) && file.Sections[s.Section].Type != elf.SHT_NOBITS {
					added[packageOf(s.Name)] += sign * int64(s.Size) //nolint:gosec // far below the maximum of int64
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var all []packageSize
	for name, bytes := range added {
		if bytes > 0 {
			all = append(all, packageSize{name, bytes})
		}
	}
	slices.SortFunc(all, func(a, b packageSize) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// packageOf returns the package of a symbol such as "net/http.(*Client).Do". It returns "the
// linker's" for symbols that the linker makes, such as type descriptors.
func packageOf(symbol string) string {
	if strings.HasPrefix(symbol, "type:") || strings.HasPrefix(symbol, "go:") || !strings.Contains(symbol, ".") {
		return "the linker's"
	}
	path := symbol
	if i := strings.IndexAny(path, "[("); i >= 0 { // type arguments and receivers have package paths too
		path = path[:i]
	}
	folder := strings.LastIndexByte(path, '/') + 1
	name, _, _ := strings.Cut(path[folder:], ".")
	return strings.ReplaceAll(path[:folder]+name, "%2e", ".")
}
