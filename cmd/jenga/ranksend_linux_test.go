package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

// deadline is the time in which all processes end after one has died: silence in cmd/cli is 25 s.
const deadline = 30 * time.Second

// job is a training in processes that a launcher has started, which goes on for hours unless something ends it.
type job struct {
	p     inProcesses
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
	ranks map[int]int // process ids by rank
}

// startJob starts a training in 4 processes, or goes on, and returns it when it has a checkpoint and has evaluated.
func startJob(t *testing.T, p inProcesses, launcher, folder string) *job {
	t.Helper()
	log, err := os.Create(filepath.Join(p.home, folder+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	j := &job{p: p, cmd: p.command(t, launcher, 4, folder), log: log, ended: make(chan error, 1)}
	j.cmd.Args = append(j.cmd.Args, "--set", "training.num_epochs=100000")
	j.cmd.Stdout, j.cmd.Stderr = log, log
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { j.ended <- j.cmd.Wait() }()
	t.Cleanup(func() {
		for _, pid := range ranksOf(t, p.program) { // those that the test has left
			syscall.Kill(pid, syscall.SIGKILL)
		}
		syscall.Kill(j.cmd.Process.Pid, syscall.SIGKILL)
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(filepath.Join(p.home, folder, "last", "training.snapshot"))
		if err == nil && strings.Contains(j.text(t), "dev after") {
			break
		}
		if len(j.ended) > 0 || time.Since(began) > time.Minute {
			t.Fatalf("%s: no checkpoint:\n%s", launcher, j.text(t))
		}
	}
	if j.ranks = ranksOf(t, p.program); len(j.ranks) != 4 {
		t.Fatalf("%s: processes %v, want 4", launcher, j.ranks)
	}
	return j
}

// ranksOf returns the running processes of a program that a launcher has started, by rank.
func ranksOf(t *testing.T, program string) map[int]int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[int]int{}
	for _, folder := range folders {
		if of, err := os.Readlink(filepath.Join(folder, "exe")); err != nil || of != program {
			continue // or it has ended meanwhile
		}
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil {
			continue
		}
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			name, value, _ := strings.Cut(variable, "=")
			if name == "PMI_RANK" || name == "OMPI_COMM_WORLD_RANK" {
				rank, err := strconv.Atoi(value)
				if err != nil {
					t.Fatal(err)
				}
				if ranks[rank], err = strconv.Atoi(filepath.Base(folder)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return ranks
}

// text returns what the processes have written.
func (j *job) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(j.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// end waits until the launcher and all processes have ended, and returns what they have written.
func (j *job) end(t *testing.T) string {
	t.Helper()
	began := time.Now()
	select {
	case err := <-j.ended:
		if err == nil {
			t.Errorf("%s ended without an error", j.cmd.Args[0])
		}
	case <-time.After(deadline):
		t.Errorf("%s still runs after %v\n%s", j.cmd.Args[0], deadline, tail(j.text(t)))
	}
	for len(ranksOf(t, j.p.program)) > 0 {
		if time.Since(began) > deadline+5*time.Second {
			t.Errorf("%s: processes %v have not ended", j.cmd.Args[0], ranksOf(t, j.p.program))
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return j.text(t)
}

func tail(text string) string { return text[max(0, len(text)-2000):] }

func signalProcess(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// saved reports whether the run's last event is that of an interruption, with a state to go on from.
func saved(t *testing.T, folder string) bool {
	t.Helper()
	events, err := os.ReadFile(filepath.Join(folder, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(events), []byte("\n"))
	return bytes.Contains(lines[len(lines)-1], []byte(`"event":"interrupted"`))
}

// eachLauncher calls do for each launcher with a folder of its own.
func eachLauncher(t *testing.T, do func(t *testing.T, p inProcesses, launcher string)) {
	launchers := mpitest.Launchers(t)
	for _, launcher := range launchers {
		t.Run(strings.ReplaceAll(launcher, "/", "_"), func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			p := inProcesses{program: filepath.Join(home, "jenga"), home: home} // ranksOf finds processes by it
			buildProgram(t, p.program, "mpi")
			killedData(t, p.home)
			do(t, p, launcher)
		})
	}
}

// A signal to one process, or to MPICH's launcher, ends all after the step at hand, with a state and one message. Open
// MPI's launcher kills the processes soon after it has passed the signal on.
func TestProcessesTrainUntilASignal(t *testing.T) {
	eachLauncher(t, func(t *testing.T, p inProcesses, launcher string) {
		library, _ := mpitest.Library(t, launcher)
		for _, to := range []string{"rank 2", "rank 0", "launcher"} {
			folder := strings.ReplaceAll(to, " ", "-")
			j := startJob(t, p, launcher, folder)
			switch to {
			case "rank 2":
				signalProcess(t, j.ranks[2], syscall.SIGTERM)
			case "rank 0":
				signalProcess(t, j.ranks[0], syscall.SIGINT)
			case "launcher":
				signalProcess(t, j.cmd.Process.Pid, syscall.SIGTERM)
			}
			text := j.end(t)
			if to == "launcher" && library == "Open MPI" {
				continue // what is left may be that of a kill
			}
			if strings.Count(text, "interrupted after step") != 1 || !saved(t, filepath.Join(p.home, folder)) {
				t.Errorf("a signal to %s: want one interruption, and a state, after\n%s", to, tail(text))
			}
		}
		j := startJob(t, p, launcher, "launcher") // it goes on
		signalProcess(t, j.ranks[3], syscall.SIGTERM)
		if text := j.end(t); !strings.Contains(text, "training goes on after step") {
			t.Errorf("a signal to the launcher: want a training that goes on, after\n%s", tail(text))
		}
	})
}

// A process that dies or stops ends the others: the launcher names the machine of the first, jenga that of the second.
func TestProcessesTrainUntilOneIsDead(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	eachLauncher(t, func(t *testing.T, p inProcesses, launcher string) {
		t.Parallel() // silence is waited for
		j := startJob(t, p, launcher, "killed")
		signalProcess(t, j.ranks[2], syscall.SIGKILL)
		if text := j.end(t); !strings.Contains(text, host) {
			t.Errorf("a killed process: want its machine, %s, in\n%s", host, tail(text))
		}
		j = startJob(t, p, launcher, "stopped")
		signalProcess(t, j.ranks[2], syscall.SIGSTOP)
		if text, want := j.end(t), "rank 2 on "+host+" has not answered for"; !strings.Contains(text, want) {
			t.Errorf("a stopped process: want %q in\n%s", want, tail(text))
		}
	})
}

// An error that all processes have is written once.
func TestProcessesTrainUntilABadLoss(t *testing.T) {
	eachLauncher(t, func(t *testing.T, p inProcesses, launcher string) {
		cmd := p.command(t, launcher, 4, "bad")
		cmd.Args = append(cmd.Args, "--set", "training.learning_rate=1.0e+30", "--set", "training.warmup_ratio=0")
		out, err := cmd.CombinedOutput()
		const want = "training ended after step"
		if err == nil || bytes.Count(out, []byte(want)) != 1 || bytes.Contains(out, []byte("rank ")) {
			t.Errorf("%v: want one error with %q in\n%s", err, want, out)
		}
	})
}

// A process that a launcher has started alone trains as one without a launcher, also without the tag mpi.
func TestProcessesTrainAlone(t *testing.T) {
	eachLauncher(t, func(t *testing.T, p inProcesses, launcher string) {
		want := p.train(t, "", 1, "without")
		untagged := inProcesses{program: filepath.Join(p.home, "untagged"), home: p.home}
		buildProgram(t, untagged.program, "")
		for folder, got := range map[string]map[string]string{
			"tagged": p.train(t, launcher, 1, "run-tagged"), "untagged": untagged.train(t, launcher, 1, "run-untagged"),
		} {
			if !maps.Equal(got, want) {
				t.Errorf("%s: not the bytes of a process without a launcher", folder)
			}
		}
		if out, err := untagged.command(t, launcher, 2, "several").CombinedOutput(); err == nil ||
			!bytes.Contains(out, []byte("built without MPI")) {
			t.Errorf("two processes without the tag: %v\n%s", err, out)
		}
	})
}
