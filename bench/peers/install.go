package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// install builds the drivers that are written in Go. It installs the pinned packages that the other
// drivers need into .build/peers, unless they are installed already.
func install(ctx context.Context, root string) error {
	for _, name := range []string{"toolkit", "bare"} {
		if err := execute(ctx, root, "go", "build", "-o", filepath.Join(built, name), "./"+sources+"/"+name); err != nil {
			return err
		}
	}
	// Fiber's driver is a module of its own, so that this module doesn't depend on Fiber.
	fiber := []string{"build", "-C", sources + "/fiber", "-o", filepath.Join(root, built, "fiber"), "."}
	if err := execute(ctx, root, "go", fiber...); err != nil {
		return fmt.Errorf("%w\nif this project's go.mod has changed, run go -C %s/fiber mod tidy", err, sources)
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: install Node 20 or later with npm, for Powertools for TypeScript", err)
		}
	}
	if err := installNode(ctx, root); err != nil {
		return err
	}
	return installPython(ctx, root)
}

// installNode installs the packages of node/package-lock.json, and copies the driver beside them,
// because Node.js looks for packages in the folder of the file that imports them.
func installNode(ctx context.Context, root string) error {
	from, to := filepath.Join(sources, "node"), filepath.Join(built, "node")
	err := once(root, to, filepath.Join(from, "package-lock.json"), func() error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			if err := copyFile(root, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				return err
			}
		}
		return execute(ctx, root, "npm", "ci", "--prefix", to, "--no-audit", "--no-fund", "--ignore-scripts")
	})
	for _, name := range []string{"driver.mjs", "powertools.mjs"} {
		if err == nil {
			err = copyFile(root, filepath.Join(from, name), filepath.Join(to, name))
		}
	}
	return err
}

func copyFile(root, from, to string) error {
	text, err := os.ReadFile(filepath.Join(root, from))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, to), text, 0o600)
	}
	return err
}

// installPython creates a virtual environment with the packages of python/requirements.txt. It
// creates the environment again if the file has changed or if an installation was interrupted.
func installPython(ctx context.Context, root string) error {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		return fmt.Errorf("%w: install Python 3.10 or later, or set PYTHON", err)
	}
	requirements := filepath.Join(sources, "python", "requirements.txt")
	venv := filepath.Join(built, "venv")
	return once(root, venv, requirements, func() error {
		pip := filepath.Join(venv, "bin", "python")
		if err := execute(ctx, root, python, "-m", "venv", venv); err != nil {
			return fmt.Errorf("%w\non Debian and Ubuntu, install python3-venv", err)
		}
		return execute(ctx, root, pip, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", requirements)
	})
}

// once calls fill, which installs the packages that the file pins lists into the folder. It does
// nothing if an earlier call has finished with the same content of pins.
func once(root, folder, pins string, fill func() error) error {
	text, err := os.ReadFile(filepath.Join(root, pins))
	if err != nil {
		return err
	}
	sum := fmt.Appendf(nil, "%x\n", sha256.Sum256(text))
	mark := filepath.Join(root, folder+".complete")
	if had, err := os.ReadFile(mark); err == nil && bytes.Equal(had, sum) {
		return nil
	}
	fmt.Fprintf(os.Stderr, "peers: installing what %s pins into %s (once)\n", pins, folder)
	if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	return os.WriteFile(mark, sum, 0o600)
}

// execute runs a command in the project's folder. Its error contains the output of the command.
func execute(ctx context.Context, root, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", c.Args, err, out)
	}
	return nil
}
