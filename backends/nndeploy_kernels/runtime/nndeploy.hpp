// SPDX-License-Identifier: Apache-2.0
//
// nndeploy.h for C++17: programs and calls that close themselves, errors as exceptions.
//
//   nndeploy::Program program("digits.nnd");
//   nndeploy::Call call(program);
//   call.set("image", pixels.data(), {1, 1, 8, 8});
//   call.run();
//   const nndeploy::View<float> scores = call.output<float>("probabilities");
#ifndef NNDEPLOY_HPP
#define NNDEPLOY_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "nndeploy.h"

namespace nndeploy {

// An error of the library; `code` is the exit code of the command.
class Error : public std::runtime_error {
 public:
  explicit Error(const nnd_error &error) : std::runtime_error(error.text), code(error.code) {}
  const int code;
};

template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr nnd_dtype value = NND_FLOAT32;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr nnd_dtype value = NND_INT32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr nnd_dtype value = NND_INT64;
};
template <>
struct DtypeOf<bool> {
  static constexpr nnd_dtype value = NND_BOOL;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr nnd_dtype value = NND_UINT8;
};
template <>
struct DtypeOf<std::int8_t> {
  static constexpr nnd_dtype value = NND_INT8;
};
template <>
struct DtypeOf<double> {
  static constexpr nnd_dtype value = NND_FLOAT64;
};
template <>
struct DtypeOf<const char *> {
  static constexpr nnd_dtype value = NND_TEXT;
};

// An output, which is there until the next run of its call.
template <typename T>
struct View {
  const T *data;
  std::vector<std::int64_t> shape;

  std::size_t size() const {
    std::size_t count = 1;
    for (const std::int64_t one : shape) count *= static_cast<std::size_t>(one);
    return count;
  }
  const T &operator[](std::size_t at) const { return data[at]; }
  const T *begin() const { return data; }
  const T *end() const { return data + size(); }
};

// An opened bundle, for several threads at once.
class Program {
 public:
  // With the text of what `nndeploy tune --decisions` wrote, steps are done as it says, where it counts here.
  explicit Program(const std::string &path, int threads = 0, const std::string &decisions = {}) {
    const char *text = decisions.empty() ? nullptr : decisions.c_str();
    open(threads, [&](const nnd_options *options, nnd_error *error) {
      return nnd_open_tuned(path.c_str(), text, options, error);
    });
  }
  Program(const std::uint8_t *bytes, std::int64_t size, int threads = 0) {
    open(threads,
         [&](const nnd_options *options, nnd_error *error) { return nnd_open_memory(bytes, size, options, error); });
  }

  int num_inputs() const { return nnd_num_inputs(program_.get()); }
  int num_outputs() const { return nnd_num_outputs(program_.get()); }
  const nnd_info &input(int number) const { return *nnd_input(program_.get(), number); }
  const nnd_info &output(int number) const { return *nnd_output(program_.get(), number); }
  // The keys of an output that is a list of maps, null for a tensor.
  const nnd_tensor *output_keys(int number) const { return nnd_output_keys(program_.get(), number); }
  // How an image becomes an input, null where the bundle does not say.
  const nnd_image_info *image() const { return nnd_image(program_.get()); }
  // Why nothing of the decisions counts here, empty where something does or there are none.
  const char *decisions_note() const { return nnd_decisions_note(program_.get()); }
  nnd_program *get() const { return program_.get(); }

 private:
  struct Close {
    void operator()(nnd_program *program) const { nnd_close(program); }
  };

  template <typename Opener>
  void open(int threads, Opener opener) {
    nnd_error error{};
    const nnd_options options{threads};
    program_.reset(opener(&options, &error));
    if (!program_) throw Error(error);
  }

  std::unique_ptr<nnd_program, Close> program_;
};

// One call at a time; its program must outlive it.
class Call {
 public:
  explicit Call(const Program &program) {
    nnd_error error{};
    call_.reset(nnd_call_new(program.get(), &error));
    if (!call_) throw Error(error);
  }

  // The data must stay until another value is given.
  template <typename T>
  void set(const char *name, const T *data, const std::vector<std::int64_t> &shape) {
    nnd_error error{};
    const nnd_tensor value{DtypeOf<T>::value, static_cast<int>(shape.size()), shape.data(), data};
    if (!nnd_set_input(call_.get(), name, &value, &error)) throw Error(error);
  }

  // Pixels of 8 bits, rows from the top; 1 channel is grey, 3 are RGB, 4 RGBA. They are not used after.
  void set_image(const std::uint8_t *pixels, std::int64_t height, std::int64_t width, int channels) {
    nnd_error error{};
    if (!nnd_set_image(call_.get(), pixels, height, width, channels, &error)) throw Error(error);
  }

  void run() {
    nnd_error error{};
    if (!nnd_run(call_.get(), &error)) throw Error(error);
  }

  template <typename T>
  View<T> output(const char *name) const {
    nnd_error error{};
    nnd_tensor value{};
    if (!nnd_get_output(call_.get(), name, &value, &error)) throw Error(error);
    if (value.dtype != DtypeOf<T>::value) throw std::invalid_argument(std::string(name) + " is of another type");
    return {static_cast<const T *>(value.data), {value.shape, value.shape + value.rank}};
  }

 private:
  struct Free {
    void operator()(nnd_call *call) const { nnd_call_free(call); }
  };
  std::unique_ptr<nnd_call, Free> call_;
};

}  // namespace nndeploy

#endif
