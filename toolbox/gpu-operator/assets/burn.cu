// Multiplies matrices on every GPU for a given number of seconds and compares the products. A GPU whose products differ
// from each other, or which reports an error, is FAULTY. The last lines are
//
//     Tested 2 GPUs:
//             GPU 0: OK
//             GPU 1: FAULTY
//
// and the exit status is 1 when a GPU is faulty, 124 when there is none.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

static const unsigned SIDE = 2048;
static const unsigned TILE = 16;
static const size_t ELEMENTS = static_cast<size_t>(SIDE) * SIDE;

// c = a * b. The order of the additions is fixed, so equal inputs give equal bits.
__global__ void multiply(const float* a, const float* b, float* c) {
    __shared__ float left[TILE][TILE];
    __shared__ float right[TILE][TILE];
    const unsigned row = blockIdx.y * TILE + threadIdx.y;
    const unsigned column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (unsigned step = 0; step < SIDE; step += TILE) {
        left[threadIdx.y][threadIdx.x] = a[static_cast<size_t>(row) * SIDE + step + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[static_cast<size_t>(step + threadIdx.y) * SIDE + column];
        __syncthreads();
        for (unsigned k = 0; k < TILE; ++k) {
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        }
        __syncthreads();
    }
    c[static_cast<size_t>(row) * SIDE + column] = sum;
}

// Counts the elements in which a product differs from the first one.
__global__ void compare(const float* first, const float* other, unsigned long long* differences) {
    const size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (__float_as_int(first[at]) != __float_as_int(other[at])) {
        atomicAdd(differences, 1ULL);
    }
}

struct Progress {
    std::atomic<unsigned long long> products{0};
    std::atomic<unsigned long long> errors{0};
    std::atomic<bool> failed{false};
    std::string reason;
};

static bool good(cudaError_t status, const char* what, Progress& progress) {
    if (status == cudaSuccess) {
        return true;
    }
    progress.reason = std::string(what) + ": " + cudaGetErrorString(status);
    progress.failed = true;
    return false;
}

static void burn(int device, std::chrono::steady_clock::time_point until, Progress& progress) {
    const size_t bytes = ELEMENTS * sizeof(float);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (!good(cudaSetDevice(device), "select the device", progress) ||
        !good(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for its memory", progress)) {
        return;
    }
    // Two inputs, and as many products as fit in 90 % of what is free: memory is tested along with arithmetic.
    const size_t fitting = static_cast<size_t>(static_cast<double>(free_bytes) * 0.9) / bytes;
    const size_t products = fitting > 4 ? fitting - 2 : 2;
    float* inputs = nullptr;
    float* results = nullptr;
    unsigned long long* differences = nullptr;
    if (!good(cudaMalloc(reinterpret_cast<void**>(&inputs), 2 * bytes), "allocate the inputs", progress) ||
        !good(cudaMalloc(reinterpret_cast<void**>(&results), products * bytes), "allocate the products", progress) ||
        !good(cudaMalloc(reinterpret_cast<void**>(&differences), sizeof(unsigned long long)), "allocate the count", progress)) {
        return;
    }
    std::vector<float> values(2 * ELEMENTS);
    unsigned state = 12345;
    for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) / 16777216.0f;
    }
    if (!good(cudaMemcpy(inputs, values.data(), 2 * bytes, cudaMemcpyHostToDevice), "copy the inputs", progress) ||
        !good(cudaMemset(differences, 0, sizeof(unsigned long long)), "clear the count", progress)) {
        return;
    }
    const float* a = inputs;
    const float* b = inputs + ELEMENTS;
    const dim3 grid(SIDE / TILE, SIDE / TILE);
    const dim3 block(TILE, TILE);
    const dim3 lines(static_cast<unsigned>(ELEMENTS / 256));
    const dim3 line(256);
    while (std::chrono::steady_clock::now() < until) {
        for (size_t at = 0; at < products; ++at) {
            float* c = results + at * ELEMENTS;
            void* arguments[] = {&a, &b, &c};
            if (!good(cudaLaunchKernel(reinterpret_cast<const void*>(multiply), grid, block, arguments, 0, 0), "multiply", progress)) {
                return;
            }
            // Waiting for each product keeps the end of the run close to the time that was asked for.
            if (!good(cudaDeviceSynchronize(), "multiply", progress)) {
                return;
            }
            progress.products += 1;
            if (at > 0) {
                void* both[] = {&results, &c, &differences};
                if (!good(cudaLaunchKernel(reinterpret_cast<const void*>(compare), lines, line, both, 0, 0), "compare", progress)) {
                    return;
                }
            }
            if (std::chrono::steady_clock::now() >= until) {
                break;
            }
        }
        unsigned long long found = 0;
        if (!good(cudaMemcpy(&found, differences, sizeof(found), cudaMemcpyDeviceToHost), "read the count", progress)) {
            return;
        }
        progress.errors = found;
    }
    if (progress.products < 2) {
        progress.reason = "fewer than two products in the whole time, nothing could be compared";
        progress.failed = true;
    }
}

int main(int argc, char** argv) {
    const int seconds = argc > 1 ? std::atoi(argv[1]) : 0;
    if (seconds <= 0) {
        std::fprintf(stderr, "usage: gpu_burn SECONDS\n");
        return 2;
    }
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        std::fprintf(stderr, "no CUDA device: %s\n", cudaGetErrorString(status));
        return 124;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto until = start + std::chrono::seconds(seconds);
    std::vector<Progress> progress(static_cast<size_t>(devices));
    std::vector<std::thread> workers;
    for (int device = 0; device < devices; ++device) {
        workers.emplace_back(burn, device, until, std::ref(progress[static_cast<size_t>(device)]));
    }
    for (int second = 1; second <= seconds; ++second) {
        std::this_thread::sleep_until(start + std::chrono::seconds(second));
        if (second % 10 == 0 || second == seconds) {
            std::printf("%d%%", second * 100 / seconds);
            for (int device = 0; device < devices; ++device) {
                const Progress& one = progress[static_cast<size_t>(device)];
                std::printf("  GPU %d: %llu products, %llu errors", device, one.products.load(), one.errors.load());
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    bool faulty = false;
    std::printf("Tested %d GPUs:\n", devices);
    for (int device = 0; device < devices; ++device) {
        const Progress& one = progress[static_cast<size_t>(device)];
        const bool bad = one.failed || one.errors > 0;
        faulty = faulty || bad;
        std::printf("\tGPU %d: %s\n", device, bad ? "FAULTY" : "OK");
        if (!one.reason.empty()) {
            std::fprintf(stderr, "GPU %d: %s\n", device, one.reason.c_str());
        }
    }
    return faulty ? 1 : 0;
}
