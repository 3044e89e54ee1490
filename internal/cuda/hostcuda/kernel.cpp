// One file of kernels, JENGA_FILE, with names of its own.
#include "device.h"

namespace {
#include JENGA_FILE
}
