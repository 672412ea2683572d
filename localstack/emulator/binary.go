package emulator

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// checkBinary finds out before the first request what would fail there.
func checkBinary(logicalID, path string) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("emulator: function %s: "+format, append([]any{logicalID}, args...)...)
	}
	if path == "" {
		return fail("Options.Binary returned no path for it")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fail("%w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fail("its bootstrap is missing, build it first: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fail("%s is not an executable file", path)
	}
	machines := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}
	if file, err := elf.Open(path); err == nil {
		arch := machines[file.Machine]
		_ = file.Close()
		if runtime.GOOS != "linux" || arch != "" && arch != runtime.GOARCH {
			return fail("%s is built for linux/%s, this machine is %s/%s; build it with GOOS=%s GOARCH=%s for a local run. "+
				"If make builds it, its Makefile's target has to take GOOS and GOARCH as variables: "+
				"GOOS=$(GOOS) GOARCH=$(GOARCH) go build, see docs/deploy.md",
				path, arch, runtime.GOOS, runtime.GOARCH, runtime.GOOS, runtime.GOARCH)
		}
	}
	return path, nil
}
